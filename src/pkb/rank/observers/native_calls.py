"""Note calls of native functions through ctypes, wherever the function's address comes from.

Each call reads the address and asks the dynamic linker which library and which function lie there. So it does not
matter whether a name was looked up in Python or by libc, or the address was computed.
"""

import _ctypes
import ctypes
import gc
import os
import re
import sys
from collections.abc import Callable
from typing import Any

from pkb.rank.observers import Note, list_subclasses

LOADER = re.compile(r"_*(libc_)?(dlv?sym|dlm?open|dlopen_mode|dl_sym|dl_open|dl_iterate_phdr|dlinfo)$|_*makecontext$")
"""Functions that find or call other functions by what only they are passed."""
_COMPILERS = {"cutlass", "nvidia_cutlass_dsl"}
"""Packages whose compiled kernels lie in no file: CuTe's language in Python."""
_CALL_SLOT = 128
"""Offset of the pointer to the function that calls an object, in CPython's types since 3.8."""


class _Place(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("start", ctypes.c_void_p),
    )


class NativeCalls:
    """Notes calls of functions that are in no library that `may_call` accepts."""

    def __init__(self, note: Note, may_call: Callable[[str], bool]):
        self._note, self._may_call = note, may_call
        self._known: set[int] = set()
        self._attributes: Any = gc.get_referents(vars(_ctypes.CFuncPtr))[0]
        self._call = self._attributes["__call__"]
        self._find_place = ctypes.CDLL(None).dladdr
        self._find_place.argtypes = (ctypes.c_void_p, ctypes.c_void_p)

    def install(self) -> None:
        """Observe all function objects of ctypes, those that exist included."""
        if not _knows_layout():
            return
        original, look = self._call, self.look

        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            look(_read_address(function))
            return original(function, *args, **kwargs)

        self._attributes["__call__"] = call
        # From now on a call looks for the method, as in a class that is written in Python.
        for owner in list_subclasses(_ctypes.CFuncPtr):
            _find_slot(owner).value = _find_slot(_Callable).value
        self._call(ctypes.pythonapi.PyType_Modified, ctypes.py_object(_ctypes.CFuncPtr))

    def look(self, address: int) -> None:
        """Note a call of the function at this address, unless a kernel may call it."""
        if address in self._known:
            return
        file, symbol = self._locate(address)
        if not file and not _is_called_by_compiler():
            self._note("native.machine code in no library")
        elif file and (LOADER.match(symbol) or not self._may_call(file)):
            self._note(f"native.{symbol or 'a function'} in {os.path.basename(file)}")
        self._known.add(address)

    def _locate(self, address: int) -> tuple[str, str]:
        """Return the file that is mapped at an address, and the name of the function there; empty where unknown."""
        place = _Place()
        if not self._call(self._find_place, address, ctypes.addressof(place)):
            return "", ""
        return os.fsdecode(place.file or b""), os.fsdecode(place.symbol or b"")


def _is_called_by_compiler() -> bool:
    """Whether the module that calls belongs to a compiler of kernels, which runs what it compiled from its memory."""
    try:
        values = sys._getframe(3).f_globals
    except ValueError:
        # Native code calls, as at the start of a thread.
        return False
    name = str(values.get("__name__"))
    return name.partition(".")[0] in _COMPILERS and vars(sys.modules.get(name, sys)) is values


class _Callable:
    def __call__(self) -> None: ...


class _NotCallable: ...


def _knows_layout() -> bool:
    """Return whether a type's pointer to the function that calls is where it is expected."""
    if sys.implementation.name != "cpython" or (hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled()):
        return False
    return bool(_find_slot(_Callable).value) and not _find_slot(_NotCallable).value


def _find_slot(owner: type) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(id(owner) + _CALL_SLOT)


def _read_address(function: Any) -> int:
    return ctypes.c_void_p.from_address(ctypes.addressof(function)).value or 0
