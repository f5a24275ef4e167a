"""Note products, decompositions and transforms by numpy, which torch does not see."""

import contextlib
import ctypes
import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import FrameType
from typing import Any

import numpy as np
import numpy.fft
import numpy.linalg

from pkb.rank.observers import Note, list_subclasses

with contextlib.suppress(ImportError):
    import numpy.linalg.lapack_lite

_FUNCTIONS = ("dot", "matmul", "vdot", "inner", "c_einsum", "correlate", "correlate2", "vecdot", "matvec", "vecmat")
"""What all of numpy's own functions that multiply come to, apart from those of linalg and fft."""
_MODULES = ("linalg._umath_linalg", "fft._pocketfft_umath", "linalg.lapack_lite")
"""Every function of these decomposes, solves or transforms."""
_METHODS = ("dot", "__matmul__", "__rmatmul__", "__imatmul__")
_INTERPRETER = "triton.runtime.interpreter"
"""The module in which tl.dot is a product by numpy: the kernel's own work."""
_OPERATOR_TABLE = 96
"""Offset of the pointer to the table of a type's operators, in CPython since 3.8."""
_OPERATORS = {"__matmul__": 34, "__imatmul__": 35}
"""Places in that table."""
_NATIVE = (np.ufunc, type(len))
_NORM: Any = inspect.unwrap(numpy.linalg.norm)
_originals: list[Any] = []
"""Kept alive, since they are recognised by their addresses."""


def observe_numpy(note: Note) -> None:
    """Wrap numpy's functions wherever its modules have them, and the methods and operators of its arrays."""
    found = {id(value): _wrap(note, f"numpy.{name}", value) for name, value in _list_functions()}
    for module in [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "numpy"]:
        for name, value in list(vars(module).items()):
            if id(value) in found:
                setattr(module, name, found[id(value)])
    if _knows_layout():
        _observe_arrays(note)


def _list_functions() -> Iterator[tuple[str, Any]]:
    core = "numpy._core" if "numpy._core" in sys.modules else "numpy.core"
    owners = [sys.modules[name] for name in ("numpy", f"{core}._multiarray_umath", f"{core}.multiarray")]
    found = [(name, getattr(owner, name)) for owner in owners for name in _FUNCTIONS if hasattr(owner, name)]
    below = [vars(module) for name in _MODULES if (module := sys.modules.get(f"numpy.{name}"))]
    found += [(name, value) for names in below for name, value in names.items() if isinstance(value, _NATIVE)]
    _originals.extend(value for _, value in found)
    yield from found


def _wrap(note: Note, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _is_own_work(sys._getframe(1)):
            note(name)
        return original(*args, **kwargs)

    return call


def _is_own_work(caller: FrameType) -> bool:
    """Return whether a product is part of Triton's interpreter, or of a norm, which is a reduction."""
    interpreter = sys.modules.get(_INTERPRETER)
    if interpreter and caller.f_globals is vars(interpreter):
        return True
    return caller.f_code is _NORM.__code__


def _observe_arrays(note: Note) -> None:
    """Replace methods of the type of arrays, which Python itself does not let be changed."""
    attributes: Any = gc.get_referents(vars(np.ndarray))[0]
    for name in _METHODS:
        if name in attributes:
            attributes[name] = _wrap(note, f"numpy.ndarray.{name}", attributes[name])
    # From now on the operators look for the methods, as in a class that is written in Python.
    for owner in list_subclasses(np.ndarray):
        for name, place in _OPERATORS.items():
            _find_operator(owner, place).value = _find_operator(_make_class(name), place).value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.ndarray))


def _knows_layout() -> bool:
    """Return whether a type's table of operators is where it is expected."""
    if sys.implementation.name != "cpython" or (hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled()):
        return False
    names = list(_OPERATORS)
    return all(
        bool(_find_operator(_make_class(name), _OPERATORS[other]).value) == (name == other)
        for name in names
        for other in names
    )


def _make_class(method: str) -> type:
    return type("Operand", (), {method: lambda self, other: NotImplemented})


def _find_operator(owner: type, place: int) -> ctypes.c_void_p:
    """Return the pointer, in place, to the function behind an operator of a type."""
    table = ctypes.c_void_p.from_address(id(owner) + _OPERATOR_TABLE).value
    assert table
    return ctypes.c_void_p.from_address(table + place * ctypes.sizeof(ctypes.c_void_p))
