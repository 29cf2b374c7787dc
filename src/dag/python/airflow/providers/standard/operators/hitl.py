"""Operators that ask a person."""

from airflow.sdk.bases.branch import BranchMixIn, SkipMixin
from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.definitions.param import ParamsDict
from updraft_hold import hold


class HITLOperator(BaseOperator):
    """Shows a question and waits for an answer."""

    _updraft_reason = "questions to a person are not asked natively yet"
    template_fields = ("subject", "body")

    def __init__(
        self,
        *,
        subject,
        options,
        body=None,
        defaults=None,
        multiple=False,
        params=None,
        notifiers=None,
        assigned_users=None,
        response_timeout=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if isinstance(defaults, str):
            defaults = [defaults]
        hold(self, locals())
        fault = self._fault()
        if fault is not None:
            raise ValueError(fault)
        params = params if isinstance(params, ParamsDict) else ParamsDict(params or {})
        # The form shows the task's own params only.
        self.params = ParamsDict.filter_params_by_source(params, "task")

    def _fault(self):
        if not self.options:
            return '"options" cannot be empty.'
        chosen = () if self.defaults is None else self.defaults
        if any(option not in self.options for option in chosen):
            return f'defaults "{chosen}" should be a subset of options "{self.options}"'
        if len(chosen) > 1 and self.multiple is False:
            return 'More than one defaults given when "multiple" is set to False.'
        return None


class ApprovalOperator(HITLOperator, SkipMixin):
    """Asks for approval; what comes after it is skipped without."""

    APPROVE = "Approve"
    REJECT = "Reject"
    FIXED_ARGS = ["options", "multiple"]

    def __init__(self, *, ignore_downstream_trigger_rules=False, fail_on_reject=False, **kwargs):
        fixed = next((name for name in self.FIXED_ARGS if name in kwargs), None)
        if fixed is not None:
            raise ValueError(f"Passing {fixed} to ApprovalOperator is not allowed.")
        super().__init__(**kwargs, multiple=False, options=[self.APPROVE, self.REJECT])
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules
        self.fail_on_reject = fail_on_reject


class HITLBranchOperator(HITLOperator, BranchMixIn):
    """Follows the tasks that a person chooses."""

    def __init__(self, *, options_mapping=None, **kwargs):
        super().__init__(**kwargs)
        self.options_mapping = options_mapping or {}


class HITLEntryOperator(HITLOperator):
    """Asks for values."""

    OK = "OK"

    def __init__(self, **kwargs):
        if "options" not in kwargs:
            kwargs = {"defaults": [self.OK], **kwargs, "options": [self.OK]}
        super().__init__(**kwargs)
