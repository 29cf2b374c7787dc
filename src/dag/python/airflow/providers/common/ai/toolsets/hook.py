"""`HookToolset`: methods of a hook as tools."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset, check_max_retries, check_tool_prefix


# Bytes of a result that a model is given.
_MAX_RESULT_BYTES = 1 << 20


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
        for method in allowed_methods:
            if method == "get_connection" or method.startswith("_"):
                raise ValueError(
                    f"HookToolset does not expose {name}.{method}: a model would get at a connection's credentials or "
                    "at what is not meant to be called. Write a method that gives what the model needs."
                )
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

    def _updraft_obstacle(self):
        hook = self._hook
        origin = getattr(hook, "_unavailable_origin", None)
        if origin is not None:
            return {
                "class": f"HookToolset of {origin[1].removesuffix('()')}",
                "module": origin[0],
                "reason": "is of a hook that the worker does not have: derive a class from one that it has, or write "
                "what the model needs as functions (FunctionToolset)",
            }
        where = {"class": f"HookToolset of {type(hook).__name__}", "module": type(hook).__module__}
        of_hook = getattr(hook, "_updraft_obstacle", None)
        reason = of_hook() if of_hook is not None else None
        if reason is not None:
            return {**where, "reason": reason}
        for name in self._allowed_methods:
            reason = getattr(getattr(hook, name, None), "_updraft_not_here", None)
            if reason is not None:
                return {**where, "class": f"HookToolset with {type(hook).__name__}.{name}", "reason": reason}
        return None

    def _method(self, name):
        from updraft_hook_methods import Method

        return Method(getattr(self._hook, name), self._pinned_arguments)

    async def get_tools(self, ctx):
        """A tool for each allowed method."""
        from functools import partial

        from airflow.providers.common.ai.utils.tool_definition import build_args_validator
        from pydantic_ai.tools import ToolDefinition
        from pydantic_ai.toolsets.abstract import ToolsetTool

        tools = {}
        for method_name in self._allowed_methods:
            method = self._method(method_name)
            name = f"{self._tool_prefix}{method_name}"
            checked = self._pinned_arguments or method.encoded
            tools[name] = ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=name,
                    description=method.description,
                    parameters_json_schema=method.schema,
                    sequential=True,
                ),
                max_retries=self._get_tool_max_retries(ctx),
                args_validator=build_args_validator(method.accepts),
                args_validator_func=partial(self._validate, method) if checked else None,
            )
        return tools

    def _validate(self, method, ctx, /, **args):
        self._refuse_pinned(args)
        method.decoded(args)

    def _refuse_pinned(self, args):
        from pydantic_ai.exceptions import ModelRetry

        given = sorted(name for name in self._pinned_arguments if name in args)
        if given:
            one = len(given) == 1
            raise ModelRetry(
                f"{', '.join(given)} {'is' if one else 'are'} fixed for this tool: call it again without "
                f"{'it' if one else 'them'}."
            )

    async def execute_tool(self, name, tool_args, *, ctx=None, tool=None):
        """Calls the method."""
        import copy

        from airflow.providers.common.ai.utils.tool_definition import serialize_for_llm

        self._refuse_pinned(tool_args)
        method = self._method(name.removeprefix(self._tool_prefix))
        result = method.function(**method.decoded(tool_args), **copy.deepcopy(self._pinned_arguments))
        text = serialize_for_llm(result)
        size = len(text.encode("utf-8", "replace"))
        if size > _MAX_RESULT_BYTES:
            from pydantic_ai.exceptions import ToolFailed

            raise ToolFailed(
                f"The result of {name} has {size} bytes, and at most {_MAX_RESULT_BYTES} are passed on: ask for less."
            )
        return text

    def _updraft_templated(self):
        return {"conn_id": self.conn_id} if isinstance(self.conn_id, str) else {}

    def _updraft_rendered(self, fields):
        """The toolset with its rendered fields; the hook of the Dag file stays as it is."""
        if fields.get("conn_id") == self.conn_id or "conn_id" not in fields:
            return self
        import copy

        own = copy.copy(self)
        own._hook = copy.copy(self._hook)
        setattr(own._hook, getattr(self._hook, "conn_name_attr", None) or "conn_id", fields["conn_id"])
        return own


def _check_pinned(hook, methods, pinned):
    if not pinned:
        return
    import updraft_signature

    faults = []
    for method in methods:
        if hasattr(getattr(hook, method), "_updraft_not_here"):
            # Its arguments are not known here; the toolset as a whole is refused for it, by name.
            continue
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
