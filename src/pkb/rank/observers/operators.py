"""Record the operators that torch dispatches: on all threads, whether Python or native code calls them; or on one."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch._C import _autograd, _profiler
from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState
from torch.utils._python_dispatch import TorchDispatchMode

from pkb.rank.observers import Note, wrap

_LAST = "pkb:last"
_STOPPED = "library.torch.autograd._disable_profiler"
_SILENT = "6"
_ACTIVITIES = {ProfilerActivity.CPU}


_prepare, _start, _stop = _autograd._prepare_profiler, _autograd._enable_profiler, _autograd._disable_profiler
"""Taken before the functions are observed."""
_SWITCHES = (
    *("_prepare_profiler", "_enable_profiler", "_disable_profiler", "_enable_record_function", "_profiler_enabled"),
    *("_set_empty_test_observer", "_enable_profiler_legacy", "_disable_profiler_legacy", "_profiler_type"),
)


class OperatorRecorder:
    """Notes the operators that are called inside a `with` block.

    Torch's profiler counts below Python: in every thread, and inside of compiled extensions. Started by hand, it costs
    less than a millisecond, and nothing in Python shows that it runs.
    """

    def __init__(self, note: Note):
        self.note = note
        # Otherwise the profiler writes lines of its own into the candidate's log.
        os.environ.setdefault("KINETO_LOG_LEVEL", _SILENT)

    def __enter__(self) -> None:
        config = ProfilerConfig(
            ProfilerState.KINETO,
            False,
            False,
            False,
            False,
            False,
            _profiler._ExperimentalConfig(profile_all_threads=True),
        )
        _prepare(config, _ACTIVITIES)
        _start(config, _ACTIVITIES)

    def __exit__(self, *_: object) -> None:
        with _profiler._RecordFunctionFast(_LAST):
            pass
        try:
            names = [event.name() for event in _stop().events()]
        except RuntimeError:
            names = []
        for name in names:
            if found := _name_operator(name):
                self.note(found)
        if _LAST not in names:
            self.note(_STOPPED)


def slow_down_launches() -> None:
    """Make launches cost what they cost once operators have been recorded: on an H200 8.2 instead of 6.7 us.

    Torch's profiler attaches to the driver when it first runs, and stays.
    """
    with OperatorRecorder(lambda name: None):
        pass


def count_on_this_thread(note: Note) -> AbstractContextManager[Any]:
    """Note the operators that this thread calls from Python, where nothing depends on them.

    On a GPU, torch's profiler attaches to the driver and stays, and every later launch is slower: timed calls would be,
    too. Torch's compiler does not work inside of this mode, so that where it is loaded nothing is noted.
    """
    return nullcontext() if "torch._dynamo" in sys.modules else _DispatchCounter(note)


class _DispatchCounter(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Otherwise torch imports its compiler here: two seconds in every rank.
        return False

    def __init__(self, note: Note):
        super().__init__()
        self.note = note

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.note(_dot(func._schema.name))
        return func(*args, **(kwargs or {}))


def _name_operator(event: str) -> str | None:
    """Return the full name of an operator or of a collective; None for what users name themselves."""
    space, separator, name = event.partition("::")
    if not separator:
        # Collectives are recorded as gloo:all_reduce.
        space, separator, name = event.partition(":")
        return f"{space}.{name}" if separator and space in ("gloo", "nccl", "ucc", "mpi", "xccl") else None
    return f"{space}.{name}" if space.isidentifier() and name.isidentifier() else None


def observe_switches(note: Note) -> None:
    """Note calls that stop the recording, or ask whether it is on."""
    for module in (_autograd, torch.autograd, torch.autograd.profiler):
        for name in _SWITCHES:
            if original := getattr(module, name, None):
                setattr(
                    module, name, wrap(original, lambda *_, name=name, **__: note(f"library.torch.autograd.{name}"))
                )


def observe_shortcuts(note: Note) -> None:
    """Note calls of an operator's kernel that go past the place where torch would record them."""
    below: Any = torch._C
    handle, kernel = below._DispatchOperatorHandle, getattr(below, "_SafeKernelFunction", None)
    if hasattr(handle, "redispatch_boxed"):
        handle.redispatch_boxed = wrap(handle.redispatch_boxed, lambda self, *_, **__: note(_name_handle(self)))
    if kernel:
        kernel.call_boxed = wrap(kernel.call_boxed, lambda self, *_, **__: note(_name_handle(self.op_handle)))
    overload: Any = torch._ops.OpOverload
    overload._op_dk = property(partial(_wrap_kernel, note), lambda self, call: vars(self).update(_op_dk=call))
    get_overload = below._get_operation_overload

    def get_operation_overload(name: str, *overloads: Any) -> Any:
        found = get_overload(name, *overloads)
        return found and (found[0], wrap(found[1], lambda *_, **__: note(_dot(name))), *found[2:])

    below._get_operation_overload = get_operation_overload


def _wrap_kernel(note: Note, overload: Any) -> Any:
    """Return the function that calls the overload's kernel for one dispatch key."""
    return wrap(vars(overload)["_op_dk"], lambda *_, **__: note(_dot(overload._schema.name)))


def _name_handle(handle: Any) -> str:
    return _dot(handle.schema().name)


def _dot(schema: str) -> str:
    return schema.replace("::", ".")
