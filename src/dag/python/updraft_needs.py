"""What tasks need that is not here, found without running them: for `updraft check`.

A task's functions are looked at by their names: what their bodies import, and what the names stand for that they load,
through the functions of the Dag's own modules that they call. What they get as arguments, or reach in another way, shows
only when they run.
"""

import inspect
import sys
from types import ModuleType

import _updraft
import updraft_values
from updraft_signature import unwrap
from updraft_source import is_own

# Names of the standard library that import and can't do their work: Dag code has no network and starts no processes.
_PROCESSES = "processes, which Dag code does not start here"
_NETWORK = "the network, which Dag code reaches through hooks only"
_WITHOUT_AUTHORITY = {
    "subprocess": (_PROCESSES, "run Popen call check_call check_output getoutput getstatusoutput"),
    "os": (_PROCESSES, "system popen fork execv execve execl spawnl spawnv posix_spawn"),
    "multiprocessing": (_PROCESSES, "Process Pool Queue Manager"),
    "socket": (_NETWORK, "socket create_connection create_server"),
    "urllib.request": (_NETWORK, "urlopen urlretrieve build_opener"),
    "http.client": (_NETWORK, "HTTPConnection HTTPSConnection"),
    "smtplib": (_NETWORK, "SMTP SMTP_SSL"),
    "ftplib": (_NETWORK, "FTP FTP_TLS"),
}
_FORBIDDEN = {
    f"{module}.{name}": what for module, (what, names) in _WITHOUT_AUTHORITY.items() for name in names.split()
}


def of_task(dag_id, task_id):
    """What a task needs and has not: a list of `{"what", "file", "line"}`, each thing once."""
    import updraft_context

    task = updraft_context.dags[dag_id].task_dict[task_id]
    search = _Search()
    for function, owner in _functions(task):
        search.function(function, owner)
    return search.found


def _functions(task):
    """The functions that a task runs, each with the class it is a method of."""
    settings = task.partial_kwargs if task.is_mapped else {}
    cls = task.operator_class if task.is_mapped else type(task)
    callable_ = getattr(task, "python_callable", None) or settings.get("python_callable")
    if callable_ is not None:
        yield callable_, None
    for name in ("__init__", "execute", "poke", "choose_branch", "pre_execute", "post_execute"):
        method = getattr(cls, name, None)
        if method is not None:
            yield method, cls
    agent_params = _kept(task, "agent_params")
    toolsets = _kept(task, "toolsets") or settings.get("toolsets")
    if not toolsets and isinstance(agent_params, dict):
        toolsets = agent_params.get("toolsets")
    for toolset in toolsets if isinstance(toolsets, (list, tuple)) else ():
        yield from _of_toolset(toolset)


def _of_toolset(toolset):
    inners = _kept(toolset, "toolsets")
    for inner in (_kept(toolset, "wrapped"), *(inners if isinstance(inners, (list, tuple)) else ())):
        if inner is not None and not hasattr(inner, "_unavailable_origin"):
            yield from _of_toolset(inner)
    tools = _kept(toolset, "tools")
    for tool in tools.values() if isinstance(tools, dict) else ():
        yield tool.function, None
    hook = _kept(toolset, "_hook")
    if hook is not None and not hasattr(hook, "_unavailable_origin"):
        for name in _kept(toolset, "_allowed_methods") or ():
            yield _attribute(hook, name), type(hook)
    for name in ("get_tools", "call_tool", "execute_tool", "filter_func", "prepare_func", "toolset_func"):
        method = _attribute(toolset, name)
        if method is not None:
            yield method, type(toolset)


def _kept(value, name):
    """What an object keeps under a name; None for what it would have to make."""
    found = inspect.getattr_static(value, name, None)
    return None if isinstance(found, property) else found


def _attribute(value, name):
    """What is asked of a value, as far as that can be said without running anything of it: a property's function."""
    from updraft_unavailable import UnavailableModule

    if isinstance(value, UnavailableModule):
        return getattr(value, name, None)
    found = inspect.getattr_static(value, name, None)
    if isinstance(found, property):
        return found.fget
    return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found


class _Search:
    def __init__(self):
        self.found = []
        self._seen = set()

    def _add(self, what, file, line):
        if not any(known["what"] == what for known in self.found):
            self.found.append({"what": what, "file": file, "line": line})

    def function(self, function, owner=None):
        """Looks at a function, and at those of the Dag's own modules that it names."""
        function = unwrap(function)
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if code is None or is_own(code.co_filename) or code in self._seen:
            return
        self._seen.add(code)
        file = code.co_filename
        text = _updraft.function_names(file, code.co_name, code.co_firstlineno)
        if text is None:
            return
        names = updraft_values.from_json(text)
        package = function.__globals__.get("__package__") or ""
        imported = {}
        for line in names["imports"]:
            self._import(line, package, file, imported)
        known = {**imported, **_closure(function)}
        own = set(code.co_varnames) - set(imported)
        for dotted, line in names["names"]:
            first, *attributes = dotted.split(".")
            if first in ("self", "cls") and owner is not None:
                if attributes:
                    self._method(owner, attributes[0], file, line)
            elif first in known or first not in own and first in function.__globals__:
                value = known[first] if first in known else function.__globals__[first]
                self._value(value, attributes, file, line)

    def _method(self, owner, name, file, line):
        """Looks at what a method asks of its own object."""
        found = _attribute(owner, name)
        reason = _not_here(found, name, owner)
        if reason is not None:
            self._add(reason, file, line)
        elif callable(found):
            self.function(found, owner)

    def _import(self, statement, package, file, imported):
        module = statement["module"]
        if statement["level"]:
            base = package.split(".")
            base = base[: len(base) - statement["level"] + 1]
            module = ".".join([*base, module] if module else base)
        missing = _missing(module)
        if missing is not None:
            self._add(_of_module(missing), file, statement["line"])
            return
        if statement["names"] is None:
            bound = statement["alias"] or module.partition(".")[0]
            # One that fails in a way of its own is not there.
            found = sys.modules.get(module if statement["alias"] else bound)
            if found is not None:
                imported[bound] = found
            return
        for name, bound in statement["names"]:
            value = getattr(sys.modules.get(module), name, None)
            if value is None and name != "*" and f"{module}.{name}" not in sys.modules:
                _missing(f"{module}.{name}")
                value = getattr(sys.modules.get(module), name, None)
            if value is not None:
                imported[bound] = value
                self._value(value, (), file, statement["line"], called=False)

    def _value(self, value, attributes, file, line, called=True):
        """Looks at what a name stands for, and at what is asked of it."""
        owner = None
        for index, attribute in enumerate(("", *attributes)):
            if index:
                owner = None if isinstance(value, ModuleType) else value if isinstance(value, type) else type(value)
                value = _attribute(value, attribute)
            if value is None:
                return
            reason = _not_here(value, attribute, owner)
            if reason is not None:
                self._add(reason, file, line)
                return
            reason = _reason(value)
            if reason is not None:
                self._add(reason, file, line)
                return
        if not called:
            return
        if isinstance(value, type):
            for name in ("__init__", "__post_init__", "__enter__", "__call__"):
                method = value.__dict__.get(name)
                if method is not None:
                    self.function(method, value)
        elif callable(value):
            self.function(value, owner)


def _not_here(value, name, owner):
    """Why a method of one of the worker's own hooks can't be called; None when it can."""
    reason = inspect.getattr_static(value, "_updraft_not_here", None)
    if reason is None:
        return None
    return f"{owner.__name__}.{name}, which is not done here: it {reason}" if owner is not None else None


def _closure(function):
    cells = function.__closure__ or ()
    found = {}
    for name, cell in zip(function.__code__.co_freevars, cells):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def _of_module(module):
    return f"the module {module}, which the Dag interpreter does not have"


def _of_name(module, name):
    """Of a name without a stand-in, also in a module that has one."""
    found = sys.modules.get(module)
    if found is None or type(found).__name__ == "UnavailableModule":
        return _of_module(module)
    return f"{module}.{name}, which the Dag interpreter does not have"


def _missing(module):
    """The module that is missing for an import; None when it works."""
    from updraft_unavailable import UnavailableModule

    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        try:
            __import__(name)
        except ImportError as error:
            return getattr(error, "name", None) or name
        except Exception:
            # The module fails in a way of its own, which says more when the task runs.
            return None
        if isinstance(sys.modules.get(name), UnavailableModule):
            return module
    return None


def _reason(value):
    """Why a value can't be used when a task runs; None when it can."""
    from updraft_unavailable import UnavailableModule

    if isinstance(value, UnavailableModule):
        return _of_module(value.__name__)
    cls = value if isinstance(value, type) else type(value)
    for holder in (value, cls):
        origin = holder.__dict__.get("_unavailable_origin") if hasattr(holder, "__dict__") else None
        if origin is not None:
            return _of_name(*origin)
    if cls is not value and cls.__module__ == "pydantic_ai.agent" and getattr(value, "_not_here", None):
        return f"an Agent with {value._not_here[0]}=, which is not supported natively"
    needs = cls.__dict__.get("_updraft_needs")
    if needs is not None:
        return needs
    named = f"{getattr(value, '__module__', None)}.{getattr(value, '__name__', None)}"
    what = _FORBIDDEN.get(named)
    if what is None and named.startswith("_"):
        what = _FORBIDDEN.get(named[1:])
    return f"{what} ({named})" if what is not None else None
