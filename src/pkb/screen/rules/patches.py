"""Changes to what other code sees: modules, operators, the file's own names."""

import ast
from collections.abc import Iterable, Iterator

from pkb.screen.facts import Facts, is_under
from pkb.screen.names import OWN_NAME
from pkb.screen.rule import BOTH, Spot, rule

_SETTINGS = (
    *("torch.backends", "torch._dynamo.config", "torch._inductor.config", "torch._functorch.config"),
    "os.environ",
)
"""Settings that are made to be assigned to; other rules look at them."""
_SETTERS = (
    *("builtins.setattr", "builtins.delattr", "builtins.object.__setattr__", "builtins.type.__setattr__"),
    *("builtins.object.__delattr__", "builtins.type.__delattr__"),
)
_TORCH_NAMESPACES = ("aten", "prim", "c10d", "_c10d_functional", "symm_mem")
_MODES = ("torch.overrides.TorchFunctionMode", "torch.utils._python_dispatch.TorchDispatchMode")


@rule("keep your changes in names of your own", reject=BOTH)
def patches(facts: Facts) -> Iterator[Spot]:
    """is replaced for everyone in the process"""
    for use in facts.find_uses("*"):
        if use.stored and _is_outside(use.name) and not is_under(use.name, _SETTINGS):
            yield use
    for use in facts.find_uses(*_SETTERS):
        owners = facts.resolve(use.call.args[0], use.scope) if use.call and use.call.args else []
        names = [getattr(owner, "name", "?") for owner in owners]
        if any(_is_outside(name) and not is_under(name, _SETTINGS) for name in names):
            yield use
    yield from facts.find_uses(
        "unittest.mock", "mock", "*.__dict__.update", "builtins.globals().update", "torch.*__setattr__"
    )


def _is_outside(name: str) -> bool:
    """Return whether a name belongs to a module, to a class in one, or to this file's module; not to an object."""
    if is_under(name, (OWN_NAME, "builtins.globals()", "builtins.vars()", "sys.modules")):
        return True
    return not name.startswith("?") and "()" not in name


@rule("register operators of your own in a namespace of your own", reject=BOTH)
def overrides_operators(facts: Facts) -> Iterator[Spot]:
    """changes what torch's own operators do"""
    for use in facts.find_uses("torch.library"):
        if any(str(text).split("::")[0] in _TORCH_NAMESPACES for text in facts.find_arguments(use)):
            yield use


@rule("return plain tensors that hold their values", warn=BOTH)
def wraps_tensors(facts: Facts) -> Iterable[Spot]:
    """stands between the judge and the values of a tensor"""
    bases = {base for node in ast.walk(facts.tree) if isinstance(node, ast.ClassDef) for base in node.bases}
    yield from (use for use in facts.find_uses("torch.Tensor") if use.node in bases)
    yield from facts.find_uses(*_MODES, "torch.Tensor.as_subclass", "torch.Tensor._make_subclass")
    yield from facts.find_uses("torch.Tensor._make_wrapper_subclass")
