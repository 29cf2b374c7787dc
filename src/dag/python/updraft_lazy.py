"""Packages whose names are imported when they are first asked for."""

import sys


def lazy_names(package, where, fallback=False):
    """A module's `__getattr__`.

    `where` maps modules to the names they hold; a name that is a module itself stands alone, without names. With
    `fallback` any other name is taken for one of a part that has no stand-in.
    """
    homes = {}
    for module, names in where.items():
        if not names:
            homes[module.rpartition(".")[2]] = (module, None)
        for name in names:
            homes[name] = (module, name)

    def __getattr__(name):
        home = homes.get(name)
        if home is None:
            if fallback and not name.startswith("__"):
                return _unavailable(package, name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = home
        __import__(module)
        value = sys.modules[module]
        if attribute is not None:
            value = getattr(value, attribute)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__, list(homes)


def _unavailable(package, name):
    from updraft_unavailable import UnavailableModule

    placeholder = sys.modules.get("updraft:" + package)
    if placeholder is None:
        placeholder = sys.modules["updraft:" + package] = UnavailableModule(package)
    return getattr(placeholder, name)
