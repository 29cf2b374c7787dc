"""The task that takes the place of an operator whose module is unavailable: it can be wired, not run."""

import updraft_signature
from airflow.sdk.bases.operator import BaseOperator

_classes = {}


def make(module, name, kwargs, mapped):
    """An instance, or with `mapped` the partial, of a class that looks like the operator that was meant."""
    cls = _classes.get((module, name))
    if cls is None:
        cls = _classes[module, name] = type(BaseOperator)(
            name,
            (BaseOperator,),
            {
                "__module__": module,
                "__init__": _init,
                "_updraft_takes_anything": True,
                "_updraft_reason": f"the module {module} is not available in the Dag interpreter",
            },
        )
    return cls.partial(**kwargs) if mapped else cls(**kwargs)


def _init(self, **kwargs):
    known = {p.name for p in updraft_signature.parameters(BaseOperator.__init__)}
    # The operator's own arguments may hold XComs, which are upstream tasks.
    own = {name: value for name, value in kwargs.items() if name not in known}
    BaseOperator.__init__(self, **{name: value for name, value in kwargs.items() if name in known})
    self.template_fields = tuple(own)
    for name, value in own.items():
        setattr(self, name, value)
