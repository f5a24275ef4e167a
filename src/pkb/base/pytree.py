"""Nested arguments and results: taking tensors out, and putting them back."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

Form = Any
"""The shape of a nested result as plain JSON: where tensors stand (by number) and what else is there."""


def tensors(tree: Any) -> Iterator[Tensor]:
    """Every tensor in nested lists, tuples, dicts and modules; a sparse one as its indices and values."""
    if isinstance(tree, Tensor) and tree.is_sparse:
        yield from (tree._indices(), tree._values())
    elif isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, nn.Module):
        yield from tree.parameters()
        yield from tree.buffers()
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from tensors(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from tensors(value)


def mapped(tree: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same nesting with every tensor replaced. Modules are changed in place."""
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, nn.Module):
        return tree._apply(change)
    if isinstance(tree, dict):
        return {key: mapped(value, change) for key, value in tree.items()}
    if isinstance(tree, list):
        return [mapped(value, change) for value in tree]
    if type(tree) is tuple:
        return tuple(mapped(value, change) for value in tree)
    return tree


def describe(tree: Any, leaves: list[Tensor]) -> Form:
    """The form of a result; its tensors are appended to `leaves`."""
    if isinstance(tree, Tensor):
        leaves.append(tree)
        return {"tensor": len(leaves) - 1}
    # Exactly these: a container of another kind may compute when it is looked into.
    if type(tree) in (list, tuple) or type(tree).__module__ == "torch.return_types":
        return [describe(value, leaves) for value in tree]
    if type(tree) is dict:
        return {"dict": {str(key): describe(value, leaves) for key, value in tree.items()}}
    if tree is None or isinstance(tree, bool | int | float | str):
        return {"value": tree}
    return {"other": type(tree).__name__}


def kind(tensor: Tensor) -> str:
    """`Tensor` or `Parameter` for what is exactly that; a subclass, or one with attributes of its own, may be lazy."""
    own = ", ".join(map(str, vars(tensor)))
    if type(tensor) in (Tensor, nn.Parameter) and not own:
        return type(tensor).__name__
    return f"{type(tensor).__module__}.{type(tensor).__qualname__}" + (f" with its own {own}" if own else "")


def oddity(tree: Any) -> str | None:
    """What in a result is neither a plain container nor a plain tensor; None when all is."""
    leaves: list[Tensor] = []
    form = describe(tree, leaves)
    if isinstance(form, dict) and "other" in form:
        return str(form["other"])
    return next((kind(leaf) for leaf in leaves if kind(leaf) not in ("Tensor", "Parameter")), None)


def rebuild(form: Form, leaves: list[Any]) -> Any:
    """The result that `describe` took apart, with tuples become lists."""
    if isinstance(form, list):
        return [rebuild(part, leaves) for part in form]
    if "tensor" in form:
        return leaves[form["tensor"]]
    if "dict" in form:
        return {key: rebuild(part, leaves) for key, part in form["dict"].items()}
    return form.get("value", form.get("other"))


def well_formed(form: Form, leaves: int) -> bool:
    """Whether this is a form at all, and names only the leaves there are."""
    if isinstance(form, list):
        return all(well_formed(part, leaves) for part in form)
    if not isinstance(form, dict) or len(form) != 1:
        return False
    ((kind, content),) = form.items()
    if kind == "dict":
        return isinstance(content, dict) and all(well_formed(part, leaves) for part in content.values())
    return kind in ("value", "other") or (kind == "tensor" and content in range(leaves))


def difference(expected: Form, actual: Form) -> str | None:
    """How two forms differ, in words; None where they agree."""
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return next((d for pair in zip(expected, actual, strict=True) if (d := difference(*pair))), None)
    if _both(expected, actual, "dict") and expected["dict"].keys() == actual["dict"].keys():
        return difference(list(expected["dict"].values()), list(actual["dict"].values()))
    if _both(expected, actual, "tensor") or expected == actual:
        return None
    return f"returned {in_words(actual)} where the reference returns {in_words(expected)}"


def in_words(form: Form) -> str:
    if isinstance(form, list):
        return f"a sequence of {len(form)}"
    if "dict" in form:
        return f"a dict with keys {', '.join(form['dict']) or '(none)'}"
    if "tensor" in form:
        return "a tensor"
    return f"an object of type {form['other']}" if "other" in form else repr(form["value"])


def _both(one: Form, other: Form, key: str) -> bool:
    return isinstance(one, dict) and isinstance(other, dict) and key in one and key in other
