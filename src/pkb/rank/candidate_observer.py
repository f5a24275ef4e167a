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

from pkb.checks.library_calls import EXCHANGED_BYTES
from pkb.rank.collective_observer import ORIGINALS
from pkb.rank.observers import Pause
from pkb.rank.observers.communication import observe_exchanges, observe_groups, observe_stores
from pkb.rank.observers.loaded_libraries import LoadedLibraries
from pkb.rank.observers.numpy_products import observe_numpy
from pkb.rank.observers.operators import OperatorRecorder, count_on_this_thread, observe_shortcuts, observe_switches


class CollectiveCounter:
    """Counts the collectives of torch.distributed from now on."""

    def __init__(self) -> None:
        self.library_calls: Counter[str] = Counter()
        """By name."""
        self._pause = Pause()
        for name, original in ORIGINALS.items():
            setattr(dist, name, self._count_calls(f"dist.{name}", original))

    def pause(self) -> contextlib.AbstractContextManager[None]:
        """Count nothing on this thread while the harness itself does what is observed."""
        return self._pause.hold()

    def note(self, name: str) -> None:
        if not self._pause.depth:
            self.library_calls[name] += 1

    def _count_calls(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def count_and_call(*args: Any, **kwargs: Any) -> Any:
            self.note(name)
            return original(*args, **kwargs)

        return count_and_call


class CandidateObserver(CollectiveCounter):
    """Observes a candidate from just before it is imported; in the track scratch, more closely."""

    def __init__(self, scratch: bool = False) -> None:
        super().__init__()
        self.entry_module: ModuleType | None = None
        self._buffers: list[weakref.ref[Tensor]] = []
        self._handles: list[Any] = []
        self._recorder = OperatorRecorder(self.note)
        self._is_counting = False
        self._exchanged_bytes = 0
        self._libraries: LoadedLibraries | None = None
        self._observe_symmetric_memory()
        if scratch:
            self._observe_closely()

    @contextlib.contextmanager
    def count_operators(self) -> Iterator[None]:
        """Count operators too, at some microseconds for each: in the track scratch on all threads."""
        self._is_counting, self._exchanged_bytes = True, 0
        try:
            with self._recorder if self._libraries else count_on_this_thread(self.note):
                yield
        finally:
            self._is_counting = False
            # Handles are exchanged once for each size: what every trial exchanges is data.
            least = min(self._exchanged_bytes, self.library_calls.get(EXCHANGED_BYTES, self._exchanged_bytes))
            self.library_calls[EXCHANGED_BYTES] = least

    def list_library_calls(self) -> dict[str, int]:
        """Return how often each operator, collective and function of a library was called, by name."""
        if self._libraries:
            self._libraries.note_mapped_files()
        return dict(self.library_calls)

    def _observe_closely(self) -> None:
        observe_groups(self.note)
        observe_stores(self._count_bytes)
        observe_exchanges(self._count_bytes, self._pause)
        # What is computed before there are inputs is a constant.
        observe_numpy(self._note_in_calls)
        observe_shortcuts(self._note_in_calls)
        observe_switches(self._note_in_calls)
        self._libraries = LoadedLibraries(self.note)

    def _note_in_calls(self, name: str) -> None:
        if self._is_counting:
            self.note(name)

    def _count_bytes(self, count: int) -> None:
        if self._is_counting and not self._pause.depth:
            self._exchanged_bytes += count

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
            if not self._pause.depth:
                remember(result)
            return result

        return call_and_remember


def _count_raised(handle: Any) -> int:
    words = handle.get_signal_pad(handle.rank, (handle.signal_pad_size // 4,), torch.int32)
    return int((words != 0).sum())
