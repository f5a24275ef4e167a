"""Nested arguments and results: take their tensors out, and put them back."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

from pkb.base.tensors import COMPARABLE

_MOST = 1 << 63
"""Numbers below this one can be sent as plain values; others, and NaN, cannot."""
_MOST_DEPTH, _MOST_TEXT = 12, 200
MOST_TENSORS, MOST_PARTS = 1024, 2000
"""Of one result: no problem has nearly as many."""
_MOST_COUNTED = 1 << 20
"""Parts are counted up to here: containers that hold each other may have more than could ever be counted."""

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


def take_apart(tree: Any, leaves: list[Tensor], depth: int = 0) -> Form:
    """Return the form of a result, and append its tensors to `leaves`. Of what is nested deeper, only the type."""
    if isinstance(tree, Tensor):
        leaves.append(tree)
        return {"tensor": len(leaves) - 1}
    if depth > _MOST_DEPTH or (isinstance(tree, str) and len(tree) > _MOST_TEXT):
        return {"other": f"{type(tree).__name__} that is too deep or too long"}
    # Exactly these types: a container of another type may compute when it is read.
    if type(tree) in (list, tuple) or type(tree).__module__ == "torch.return_types":
        return [take_apart(value, leaves, depth + 1) for value in tree]
    if type(tree) is dict:
        return {"dict": {str(key): take_apart(value, leaves, depth + 1) for key, value in tree.items()}}
    if tree is None or isinstance(tree, bool | str) or (isinstance(tree, int | float) and abs(tree) < _MOST):
        return {"value": tree}
    return {"other": f"{type(tree).__name__} {tree}" if isinstance(tree, float) else type(tree).__name__}


def describe_excess(tree: Any) -> str | None:
    """Return what a result is, if it has more tensors or other parts than are looked at; None otherwise."""
    tensors, parts, left = 0, 0, [iter([tree])]
    while left and parts < _MOST_COUNTED:
        for value in left[-1]:
            parts, tensors = parts + 1, tensors + isinstance(value, Tensor)
            if type(value) in (list, tuple, dict) and len(left) <= _MOST_DEPTH:
                left.append(iter([*value.values()] if type(value) is dict else value))
                break
            if parts >= _MOST_COUNTED:
                break
        else:
            left.pop()
    if tensors <= MOST_TENSORS and parts <= MOST_PARTS:
        return None
    count = f"{tensors} tensors" if tensors > MOST_TENSORS else f"{parts} parts"
    return f"{type(tree).__name__} with {count}{' or more' if left else ''}"


def describe_kind(tensor: Tensor) -> str:
    """Return `Tensor` or `Parameter` for a plain one of exactly these types, and a longer name for all others.

    A tensor of a subclass may compute when it is read, and so may one with a method of its own. Quantised and nested
    tensors have no plain memory that could be read.
    """
    kind = type(tensor)
    if kind not in (Tensor, nn.Parameter):
        return f"{kind.__module__}.{kind.__qualname__}"
    if own := _list_own_methods(tensor):
        return f"{kind.__name__} with its own {', '.join(own)}"
    form = "nested " if tensor.is_nested else "quantised " if tensor.is_quantized else ""
    odd = "" if tensor.dtype in COMPARABLE else f" of {tensor.dtype}"
    return f"{form}{kind.__name__}{odd}"


def is_plain(tensor: Tensor) -> bool:
    return describe_kind(tensor) in ("Tensor", "Parameter")


def _list_own_methods(tensor: Tensor) -> list[str]:
    """Return the attributes of this one tensor that hide attributes of its class.

    All others are notes that nobody reads here: torch.compile and torch.distributed leave some on the tensors that they
    are passed. A dict or a name of another type may hide attributes without showing them.
    """
    own = vars(tensor)
    if type(own) is not dict:
        return ["__dict__"]
    hiding = [name for name in own if type(name) is not str or hasattr(type(tensor), name)]
    return [name if type(name) is str else type(name).__name__ for name in hiding]


def find_oddity(tree: Any) -> str | None:
    """Return the type of a part that is neither a plain container nor a plain tensor; None if there is none."""
    leaves: list[Tensor] = []
    form = take_apart(tree, leaves)
    if isinstance(form, dict) and "other" in form:
        return str(form["other"])
    return next((describe_kind(leaf) for leaf in leaves if not is_plain(leaf)), None)


def rebuild(form: Form, leaves: list[Any]) -> Any:
    """Return the result that `take_apart` took apart, with lists in place of tuples."""
    if isinstance(form, list):
        return [rebuild(part, leaves) for part in form]
    if "tensor" in form:
        return leaves[form["tensor"]]
    if "dict" in form:
        return {key: rebuild(part, leaves) for key, part in form["dict"].items()}
    return form.get("value", form.get("other"))


def list_form_tensors(form: Form) -> list[int]:
    """Return the numbers of the tensors in a form, in its order. Raises ValueError for what is no form."""
    if isinstance(form, list):
        return [number for part in form for number in list_form_tensors(part)]
    if not isinstance(form, dict) or len(form) != 1:
        raise ValueError("a form is a list, or an object with one field")
    ((kind, content),) = form.items()
    if kind == "dict" and isinstance(content, dict):
        return list_form_tensors([*content.values()])
    if kind == "tensor" and type(content) is int:
        return [content]
    if (kind == "value" and not isinstance(content, list | dict)) or (kind == "other" and isinstance(content, str)):
        return []
    raise ValueError(f"{kind!r} is no part of a form")


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
