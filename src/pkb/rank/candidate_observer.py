"""What a rank observes of its candidate: library calls and symmetric memory. `pkb.checks` reports it to the judge."""

import contextlib
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.checks.library_calls import CALLS, EXCHANGED_BYTES, EXCHANGING_CALLS
from pkb.rank.collective_observer import ORIGINALS
from pkb.rank.observers import Pause
from pkb.rank.observers.communication import observe_exchanges, observe_groups, observe_stores
from pkb.rank.observers.loaded_libraries import LoadedLibraries
from pkb.rank.observers.numpy_products import observe_numpy
from pkb.rank.observers.operators import OperatorRecorder, count_on_this_thread, observe_shortcuts, observe_switches

_PLAIN = (Tensor, str, int, bool, float, NoneType, torch.dtype, torch.device, dist.ProcessGroup)


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

    def __init__(self, scratch: bool = False, compiled: Sequence[Path] = (), folder: Path = Path()) -> None:
        """`compiled` are the folders of what the judge compiled from its source; it may write to `folder`."""
        super().__init__()
        self.entry_module: ModuleType | None = None
        self._buffers: list[weakref.ref[Tensor]] = []
        self._handles: list[Any] = []
        self._recorder = OperatorRecorder(self.note)
        self._is_counting = False
        self._calls = 0
        self._exchanged: Counter[int] = Counter()
        """Bytes that were exchanged on the host, by the number of the call."""
        self._libraries: LoadedLibraries | None = None
        self._observe_symmetric_memory()
        if scratch:
            self._observe_closely(compiled, folder)

    @contextlib.contextmanager
    def count_operators(self) -> Iterator[None]:
        """Count operators too, at some microseconds for each: in the track scratch on all threads."""
        self._is_counting = True
        try:
            with self._recorder if self._libraries else count_on_this_thread(self.note):
                yield
        finally:
            self._is_counting = False

    def begin_call(self) -> None:
        """Note that a call is about to begin, or a block of timed calls: what follows belongs to it, on all threads."""
        self._calls += 1

    def list_library_calls(self) -> dict[str, int]:
        """Return how often each operator, collective and function of a library was called, by name."""
        if self._libraries:
            self._libraries.note_mapped_files()
        most = max(self._exchanged.values(), default=0)
        return {**self.library_calls, CALLS: self._calls, EXCHANGING_CALLS: len(self._exchanged), EXCHANGED_BYTES: most}

    def _observe_closely(self, compiled: Sequence[Path], folder: Path) -> None:
        observe_groups(self.note)
        observe_stores(self._count_bytes)
        observe_exchanges(self._count_bytes, self._pause)
        # What is computed before there are inputs is a constant.
        observe_numpy(self._note_in_calls)
        observe_shortcuts(self._note_in_calls)
        observe_switches(self._note_in_calls)
        self._libraries = LoadedLibraries(self.note, compiled, folder)

    def _note_in_calls(self, name: str) -> None:
        if self._is_counting:
            self.note(name)

    def _count_bytes(self, count: int) -> None:
        # Before the first call there are no inputs.
        if self._calls and not self._pause.depth:
            self._exchanged[self._calls] += count

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
            # What is paused must not run code of the candidate's: its own classes may compute when they are read.
            with self.pause() if all(map(_is_plain, (*args, *kwargs.values()))) else contextlib.nullcontext():
                result = original(*args, **kwargs)
            if not self._pause.depth:
                remember(result)
            return result

        return call_and_remember


def _is_plain(argument: Any) -> bool:
    """Whether an argument is of one of these very classes, all through."""
    if type(argument) in (list, tuple, torch.Size):
        return all(map(_is_plain, argument))
    return type(argument) in (*_PLAIN, type(dist.group.WORLD))


def _count_raised(handle: Any) -> int:
    words = handle.get_signal_pad(handle.rank, (handle.signal_pad_size // 4,), torch.int32)
    return int((words != 0).sum())
