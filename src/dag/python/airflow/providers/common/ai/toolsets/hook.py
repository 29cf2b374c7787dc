"""`HookToolset`: methods of a hook as tools."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset, check_max_retries, check_tool_prefix


class HookToolset(AirflowToolset):
    """Exposes chosen methods of a hook."""

    agent_template_fields = ("conn_id",)

    def __init__(
        self,
        hook,
        *,
        allowed_methods,
        tool_prefix="",
        tool_name_prefix=None,
        pinned_arguments=None,
        max_retries=None,
    ):
        check_tool_prefix(tool_prefix)
        if tool_prefix and tool_name_prefix is not None and tool_name_prefix != tool_prefix + "_":
            raise ValueError(
                f"tool_prefix={tool_prefix!r} and tool_name_prefix={tool_name_prefix!r} conflict. Pass only "
                "tool_prefix; tool_name_prefix is its deprecated alias and must equal "
                f"{tool_prefix + '_'!r} when both are given."
            )
        check_max_retries(max_retries)
        if not allowed_methods:
            raise ValueError("allowed_methods must be a non-empty list.")
        name = type(hook).__name__
        methods = []
        if not hasattr(type(hook), "_unavailable_origin") and not hasattr(hook, "_unavailable_origin"):
            for method in allowed_methods:
                if not hasattr(hook, method):
                    raise ValueError(f"Hook {name!r} has no method {method!r}. Check your allowed_methods list.")
                if not callable(getattr(hook, method)):
                    raise ValueError(f"{name}.{method} is not callable.")
                methods.append(method)
            _check_pinned(hook, methods, pinned_arguments or {})
        self._hook = hook
        self._allowed_methods = list(allowed_methods)
        self._tool_prefix = (
            tool_name_prefix if tool_name_prefix is not None else f"{tool_prefix}_" if tool_prefix else ""
        )
        self._pinned_arguments = dict(pinned_arguments or {})
        self._max_retries = max_retries

    @property
    def conn_id(self):
        """The hook's connection; None when it keeps none."""
        return getattr(self._hook, getattr(self._hook, "conn_name_attr", None) or "conn_id", None)

    @property
    def id(self):
        """`hook-`, the class and the connection."""
        suffix = f"-{self.conn_id}" if self.conn_id else ""
        return f"hook-{type(self._hook).__name__}{suffix}"


def _check_pinned(hook, methods, pinned):
    if not pinned:
        return
    import updraft_signature

    faults = []
    for method in methods:
        named = {
            p.name
            for p in updraft_signature.parameters(getattr(hook, method))
            if p.kind in ("POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY")
        }
        missing = [name for name in pinned if name not in named]
        if missing:
            faults.append(f"{method}() does not take {', '.join(missing)}")
    if faults:
        raise ValueError(
            f"Every allowed method of {type(hook).__name__!r} has to take each pinned argument by name, or the model "
            f"could still choose it through that method: {'; '.join(faults)}. Expose such a method from a second "
            "HookToolset."
        )
