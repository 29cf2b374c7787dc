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
        if not options:
            raise ValueError('"options" cannot be empty.')
        if isinstance(defaults, str):
            defaults = [defaults]
        if defaults is not None:
            if not set(defaults).issubset(options):
                raise ValueError(f'defaults "{defaults}" should be a subset of options "{options}"')
            if multiple is False and len(defaults) > 1:
                raise ValueError('More than one defaults given when "multiple" is set to False.')
        hold(self, locals())
        params = params if isinstance(params, ParamsDict) else ParamsDict(params or {})
        # The form shows the task's own params only.
        self.params = ParamsDict.filter_params_by_source(params, "task")


class ApprovalOperator(HITLOperator, SkipMixin):
    """Asks for approval; what comes after it is skipped without."""

    APPROVE = "Approve"
    REJECT = "Reject"
    FIXED_ARGS = ["options", "multiple"]

    def __init__(self, *, ignore_downstream_trigger_rules=False, fail_on_reject=False, **kwargs):
        for name in self.FIXED_ARGS:
            if name in kwargs:
                raise ValueError(f"Passing {name} to ApprovalOperator is not allowed.")
        super().__init__(options=[self.APPROVE, self.REJECT], multiple=False, **kwargs)
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
            kwargs["options"] = [self.OK]
            if "defaults" not in kwargs:
                kwargs["defaults"] = [self.OK]
        super().__init__(**kwargs)
