"""What a rank observes of its candidate: library calls and symmetric memory. `pkb.checks` reports it to the judge."""

import contextlib
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pkb.rank.collective_observer import ORIGINALS

_WATCHED_SPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "symm_mem")
_PRODUCTS = (
    *("mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "linear", "convolution", "_scaled_mm"),
    *("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention"),
    *("_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu"),
)
"""Operators of aten that a vendor's library computes."""


class CollectiveCounter:
    """Counts the collectives of torch.distributed from now on."""

    def __init__(self) -> None:
        self.library_calls: Counter[str] = Counter()
        """By name."""
        self._paused = False
        for name, original in ORIGINALS.items():
            setattr(dist, name, self._count_calls(f"dist.{name}", original))

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Count nothing while the harness itself does what is observed."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def note(self, name: str) -> None:
        if not self._paused:
            self.library_calls[name] += 1

    def _count_calls(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def count_and_call(*args: Any, **kwargs: Any) -> Any:
            self.note(name)
            return original(*args, **kwargs)

        return count_and_call


class CandidateObserver(CollectiveCounter):
    """Observes a candidate from just before it is imported."""

    def __init__(self) -> None:
        super().__init__()
        self.entry_module: ModuleType | None = None
        self._buffers: list[weakref.ref[Tensor]] = []
        self._handles: list[Any] = []
        self._observe_symmetric_memory()

    def count_operators(self) -> contextlib.AbstractContextManager[Any]:
        """Count operators too, inside a mode that costs some microseconds per operator."""
        return _OperatorCounter(self)

    def poison_symmetric_buffers(self) -> None:
        """Fill symmetric buffers of floats with NaN. Those of integers may be a kernel's own flags."""
        for buffer in (reference() for reference in self._buffers):
            if buffer is not None and buffer.is_floating_point():
                buffer.fill_(float("nan"))

    def count_raised_signals(self) -> int:
        """Return the number of words in this rank's signal pads that are not zero."""
        return sum(map(_count_raised, self._handles))

    def _observe_symmetric_memory(self) -> None:
        import torch.distributed._symmetric_memory as symm_mem

        module: Any = symm_mem
        module.empty = self._remember_results(module.empty, lambda t: self._buffers.append(weakref.ref(t)))
        module.rendezvous = self._remember_results(module.rendezvous, self._handles.append)

    def _remember_results(self, original: Callable[..., Any], remember: Callable[[Any], None]) -> Callable[..., Any]:
        @wraps(original)
        def call_and_remember(*args: Any, **kwargs: Any) -> Any:
            with self.pause():
                result = original(*args, **kwargs)
            if not self._paused:
                remember(result)
            return result

        return call_and_remember


class _OperatorCounter(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Otherwise torch imports its compiler here: two seconds in every rank.
        return False

    def __init__(self, counter: CollectiveCounter):
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        space, _, name = func._schema.name.partition("::")
        if space in _WATCHED_SPACES or (space == "aten" and name in _PRODUCTS):
            self.counter.note(f"{space}.{name}")
        return func(*args, **(kwargs or {}))


def _count_raised(handle: Any) -> int:
    words = handle.get_signal_pad(handle.rank, (handle.signal_pad_size // 4,), torch.int32)
    return int((words != 0).sum())
