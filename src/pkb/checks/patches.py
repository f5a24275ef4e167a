"""A candidate must not replace clocks, collectives, builtins, or functions of the harness in its rank."""

import builtins
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.checks import Breach, Check, Observations
from pkb.settings import Track

# Without torch.manual_seed, which torch.compile itself replaces when it is first used.
_CRITICAL: dict[Any, tuple[str, ...]] = {
    time: tuple(name for name in dir(time) if callable(getattr(time, name))),
    os: ("close", "dup", "dup2", "fork", "getpid", "pipe", "read", "sched_yield", "write"),
    json: ("dumps", "loads"),
    sys: ("_current_frames", "settrace", "setprofile"),
    threading: ("Thread", "enumerate"),
    builtins: tuple(name for name in vars(builtins) if callable(vars(builtins)[name])),
    torch: (
        *("allclose", "as_strided", "cat", "clone", "empty", "empty_like", "equal", "frombuffer", "from_numpy", "full"),
        *("rand", "randint", "randn", "stack", "sum", "tensor", "where", "zeros", "Generator", "Tensor"),
    ),
    torch.cuda: ("Event", "Stream", "synchronize", "current_stream", "_sleep"),
    torch.cuda.Event: ("record", "elapsed_time", "query", "synchronize"),
    Tensor: (
        *(
            "clone",
            "copy_",
            "contiguous",
            "cpu",
            "data_ptr",
            "detach",
            "element_size",
            "fill_",
            "is_contiguous",
            "numel",
        ),
        *("numpy", "reshape", "stride", "to", "untyped_storage", "view", "zero_"),
    ),
    dist: (
        *("all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single"),
        *("barrier", "batch_isend_irecv", "broadcast", "gather", "irecv", "isend", "recv", "reduce", "reduce_scatter"),
        *("reduce_scatter_tensor", "scatter", "send"),
    ),
}
_LIBRARIES = ("pkb.triton_lib", "pkb.symmetric", "pkb.cuda_lib")
"""Modules that a candidate may extend: nothing of the harness relies on them."""
_MOST_NAMED = 8

Named = dict[str, Any]
"""Functions, classes, code objects and modules by their full names."""


class PatchCheck(Check):
    name = "patched"
    report_type = list[str]

    def __init__(self, observer: Observations):
        super().__init__(observer)
        self._modules = {name: module for name, module in sys.modules.items() if _is_harness(name)}
        self._before = self._identify()

    def report(self) -> list[str]:
        """Return the names of functions that are not what they were, and of those that hide a function from us."""
        now = self._identify()
        lost = {name for name, original in self._before.items() if now.get(name) is not original}
        added = {name for name in now.keys() - self._before.keys() if isinstance(now[name], FunctionType)}
        return sorted(lost | added)[:_MOST_NAMED]

    def _identify(self) -> Named:
        found = {
            f"{owner.__name__}.{name}": getattr(owner, name, None) for owner in _CRITICAL for name in _CRITICAL[owner]
        }
        for name, module in self._modules.items():
            found[f"sys.modules[{name}]"] = sys.modules.get(name)
            found |= _identify_module(module)
        return found

    @staticmethod
    def conclude(reports: Sequence[list[str]], track: Track) -> Breach | None:
        for rank, names in enumerate(reports):
            if names:
                reason = f"rank {rank} replaced {', '.join(names)}; leave what is not yours as it is"
                return Breach("CHEAT", reason, rank)
        return None


def _is_harness(name: str) -> bool:
    is_library = name == "pkb" or f"{name}.".startswith(tuple(f"{library}." for library in _LIBRARIES))
    return name.startswith(("pkb.", "pkb_problem_")) and not is_library


def _identify_module(module: ModuleType) -> Named:
    """Return what a module calls: functions, classes and modules by its names, and what its tables hold."""
    found: Named = {}
    for name, value in list(vars(module).items()):
        full = f"{module.__name__}.{name}"
        if isinstance(value, type):
            found[full] = value
            # A class of another module is identified there, if it is ours.
            found |= _identify_class(value) if value.__module__ == module.__name__ else {}
        elif isinstance(value, dict) and not name.startswith("__"):
            found |= {f"{full}[{key}]": one for key, one in list(value.items()) if callable(one)}
        elif isinstance(value, ModuleType) or callable(value):
            found |= _identify_function(full, value)
    return found


def _identify_class(owner: type) -> Named:
    found: Named = {}
    for name, value in list(vars(owner).items()):
        if callable(value) or hasattr(type(value), "__get__"):
            found |= _identify_function(f"{owner.__module__}.{owner.__qualname__}.{name}", value)
    return found


def _identify_function(name: str, value: Any) -> Named:
    """Return a function and the parts of it that can be replaced in place."""
    return {name: value, **dict(_list_parts(name, value))}


def _list_parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if isinstance(function, property):
        function = function.fget
    if isinstance(function, FunctionType):
        yield f"{name}.__code__", function.__code__
        yield f"{name}.__defaults__", function.__defaults__


CHECK = PatchCheck
