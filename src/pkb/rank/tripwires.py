"""What a rank notices of its candidate's conduct. The candidate shares its process, so this catches the clumsy and
explains; what must not be fooled is decided elsewhere, by the judge.
"""

import contextlib
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pkb.protocol.channel import Message
from pkb.rank.collective_observer import ORIGINALS

_CRITICAL: dict[Any, tuple[str, ...]] = {
    time: ("perf_counter", "perf_counter_ns", "monotonic", "time"),
    torch: ("empty", "equal", "allclose", "full", "sum", "where"),
    torch.cuda: ("Event", "synchronize", "current_stream", "_sleep"),
    torch.cuda.Event: ("record", "elapsed_time", "query", "synchronize"),
    Tensor: ("clone", "copy_", "contiguous", "cpu", "data_ptr", "detach", "numpy", "reshape", "stride", "view"),
}
"""Clocks, and what results are taken with."""
_WATCHED_SPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "symm_mem")
_PRODUCTS = (
    *("mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "linear", "convolution", "_scaled_mm"),
    *("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention"),
    *("_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu"),
)
"""Operators of aten that a vendor's library computes."""


class Tally:
    """Counts collectives from now on."""

    def __init__(self) -> None:
        self.library_calls: Counter[str] = Counter()
        """By name."""
        self._asleep = False
        for name, original in ORIGINALS.items():
            setattr(dist, name, self._counted(f"dist.{name}", original))

    @contextlib.contextmanager
    def asleep(self) -> Iterator[None]:
        """While the harness itself does what is watched."""
        before, self._asleep = self._asleep, True
        try:
            yield
        finally:
            self._asleep = before

    def note(self, name: str) -> None:
        if not self._asleep:
            self.library_calls[name] += 1

    def _counted(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.note(name)
            return original(*args, **kwargs)

        return counted


class Watch(Tally):
    """Begins before the candidate is imported."""

    def __init__(self) -> None:
        super().__init__()
        self._buffers: list[weakref.ref[Tensor]] = []
        self._handles: list[Any] = []
        self._look_at_symmetric_memory()
        self._identities = _identities()
        self._threads = set(threading.enumerate())

    def counting(self) -> contextlib.AbstractContextManager[Any]:
        """Count operators too; a mode that costs some microseconds per operator."""
        return _Census(self)

    def spoil(self) -> None:
        """Fill symmetric buffers of floats with NaN. Those of integers may be a kernel's own flags."""
        for buffer in (reference() for reference in self._buffers):
            if buffer is not None and buffer.is_floating_point():
                buffer.fill_(float("nan"))

    def report(self) -> Message:
        started = [t.name for t in threading.enumerate() if t not in self._threads and t.is_alive()]
        patched = [name for name, identity in _identities().items() if self._identities[name] != identity]
        return {
            "patched": patched,
            "threads": started,
            "library_calls": dict(self.library_calls),
            "raised_signals": sum(map(_raised, self._handles)),
        }

    def _look_at_symmetric_memory(self) -> None:
        import torch.distributed._symmetric_memory as symm_mem

        module: Any = symm_mem
        module.empty = self._remembering(module.empty, lambda t: self._buffers.append(weakref.ref(t)))
        module.rendezvous = self._remembering(module.rendezvous, self._handles.append)

    def _remembering(self, original: Callable[..., Any], remember: Callable[[Any], None]) -> Callable[..., Any]:
        @wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            with self.asleep():
                result = original(*args, **kwargs)
            if not self._asleep:
                remember(result)
            return result

        return watched


class _Census(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Otherwise torch imports its compiler here: two seconds in every rank.
        return False

    def __init__(self, watch: Watch):
        super().__init__()
        self.watch = watch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        space, _, name = func._schema.name.partition("::")
        if space in _WATCHED_SPACES or (space == "aten" and name in _PRODUCTS):
            self.watch.note(f"{space}.{name}")
        return func(*args, **(kwargs or {}))


def _identities() -> dict[str, int]:
    owners = {**_CRITICAL, dist: tuple(ORIGINALS)}
    return {
        f"{owner.__name__}.{name}": id(getattr(owner, name, None)) for owner, names in owners.items() for name in names
    }


def _raised(handle: Any) -> int:
    words = handle.get_signal_pad(handle.rank, (handle.signal_pad_size // 4,), torch.int32)
    return int((words != 0).sum())
