"""Nested arguments and results: take their tensors out, and put them back."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

Form = Any
"""The shape of a nested result as plain JSON: where tensors stand (by number) and what else is there."""


def iterate_tensors(tree: Any) -> Iterator[Tensor]:
    """Yield every tensor in nested lists, tuples, dicts and modules; a sparse tensor as its indices and values."""
    if isinstance(tree, Tensor) and tree.is_sparse:
        yield from (tree._indices(), tree._values())
    elif isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, nn.Module):
        yield from tree.parameters()
        yield from tree.buffers()
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from iterate_tensors(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from iterate_tensors(value)


def map_tensors(tree: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return the same nesting with every tensor replaced. Modules are changed in place."""
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, nn.Module):
        return tree._apply(change)
    if isinstance(tree, dict):
        return {key: map_tensors(value, change) for key, value in tree.items()}
    if isinstance(tree, list):
        return [map_tensors(value, change) for value in tree]
    if type(tree) is tuple:
        return tuple(map_tensors(value, change) for value in tree)
    return tree


def take_apart(tree: Any, leaves: list[Tensor]) -> Form:
    """Return the form of a result, and append its tensors to `leaves`."""
    if isinstance(tree, Tensor):
        leaves.append(tree)
        return {"tensor": len(leaves) - 1}
    # Exactly these types: a container of another type may compute when it is read.
    if type(tree) in (list, tuple) or type(tree).__module__ == "torch.return_types":
        return [take_apart(value, leaves) for value in tree]
    if type(tree) is dict:
        return {"dict": {str(key): take_apart(value, leaves) for key, value in tree.items()}}
    if tree is None or isinstance(tree, bool | int | float | str):
        return {"value": tree}
    return {"other": type(tree).__name__}


def describe_kind(tensor: Tensor) -> str:
    """Return `Tensor` or `Parameter` for exactly these types, and a longer name for subclasses, which may be lazy.

    A tensor with attributes of its own may be lazy too, so the name lists them.
    """
    own = ", ".join(map(str, vars(tensor)))
    if type(tensor) in (Tensor, nn.Parameter) and not own:
        return type(tensor).__name__
    return f"{type(tensor).__module__}.{type(tensor).__qualname__}" + (f" with its own {own}" if own else "")


def find_oddity(tree: Any) -> str | None:
    """Return the type of a part that is neither a plain container nor a plain tensor; None if there is none."""
    leaves: list[Tensor] = []
    form = take_apart(tree, leaves)
    if isinstance(form, dict) and "other" in form:
        return str(form["other"])
    return next((describe_kind(leaf) for leaf in leaves if describe_kind(leaf) not in ("Tensor", "Parameter")), None)


def rebuild(form: Form, leaves: list[Any]) -> Any:
    """Return the result that `take_apart` took apart, with lists in place of tuples."""
    if isinstance(form, list):
        return [rebuild(part, leaves) for part in form]
    if "tensor" in form:
        return leaves[form["tensor"]]
    if "dict" in form:
        return {key: rebuild(part, leaves) for key, part in form["dict"].items()}
    return form.get("value", form.get("other"))


def is_well_formed(form: Form, leaves: int) -> bool:
    """Return whether a value has the structure of a form and refers only to existing leaves."""
    if isinstance(form, list):
        return all(is_well_formed(part, leaves) for part in form)
    if not isinstance(form, dict) or len(form) != 1:
        return False
    ((kind, content),) = form.items()
    if kind == "dict":
        return isinstance(content, dict) and all(is_well_formed(part, leaves) for part in content.values())
    return kind in ("value", "other") or (kind == "tensor" and content in range(leaves))


def describe_difference(expected: Form, actual: Form) -> str | None:
    """Return a sentence on how two forms differ; None if they agree."""
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return next((d for pair in zip(expected, actual, strict=True) if (d := describe_difference(*pair))), None)
    if _both_have(expected, actual, "dict") and expected["dict"].keys() == actual["dict"].keys():
        return describe_difference(list(expected["dict"].values()), list(actual["dict"].values()))
    if _both_have(expected, actual, "tensor") or expected == actual:
        return None
    return f"returned {describe_form(actual)} where the reference returns {describe_form(expected)}"


def describe_form(form: Form) -> str:
    if isinstance(form, list):
        return f"a sequence of {len(form)}"
    if "dict" in form:
        return f"a dict with keys {', '.join(form['dict']) or '(none)'}"
    if "tensor" in form:
        return "a tensor"
    return f"an object of type {form['other']}" if "other" in form else repr(form["value"])


def _both_have(one: Form, other: Form, key: str) -> bool:
    return isinstance(one, dict) and isinstance(other, dict) and key in one and key in other
