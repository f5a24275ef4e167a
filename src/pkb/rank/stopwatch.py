"""Timed blocks inside one rank.

The device is held back by a spin until the host is so far ahead that it stays so, and launching is not what is
measured. Before each call the ranks meet at a barrier of our own; marks on the device stand around the call.
"""

import itertools
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.base.pytree import MOST_TENSORS, find_oddity, iterate_tensors, map_tensors
from pkb.platforms import Platform
from pkb.protocol.messages import BlockTimes
from pkb.rank.call import Call

Solution = Callable[..., Any]

_OWN_SEGMENT = 32 << 20
"""Too large for torch's allocator to put anything else beside it."""
_LATE_S = 4e-6
_STAGGERED, _STAGGERED_EACH = 128, 8
"""Launches at the most, before a block and before each of its calls."""
_POISON = 0xFF
"""NaN in every float, and no index into anything."""


class Stopwatch:
    def __init__(self, platform: Platform, world: int, device: torch.device):
        self.clock = platform.make_clock()
        self.meet = _make_barrier(device) if world > 1 else _meet_nobody
        self.synchronize, self.free_unused_memory = platform.synchronize, platform.free_unused_memory
        self.kept: list[Any] = []
        """What each call of the last block, or of the last run, returned."""
        self._output_bytes: list[int] = []
        self._device = device

    def warm_up(self, calls: Sequence[Call], solution: Solution, count: int) -> None:
        self.free_unused_memory()
        for call in itertools.islice(itertools.cycle(calls), count):
            call.begin()
            self._look_at(_make_dense(solution(*call.spare_args())))
        self.synchronize()

    def time_block(self, calls: Sequence[Call], solution: Solution, spin_s: float, flush: bool) -> BlockTimes:
        """Time each call once, and keep a copy of what it returned, taken right behind the call."""
        self.kept = []
        marks, odd, ahead, is_ahead = [], None, 0, True
        self.synchronize()
        start = time.perf_counter()
        self.clock.hold_back(spin_s)
        if flush:
            # Once is enough: no two calls of a block share arguments. Code stays as warm as it is in real use.
            self.clock.flush_cache()
        self._stagger(_STAGGERED)
        for call in calls:
            self._poison()
            self._stagger(_STAGGERED_EACH)
            # In an order of its own each time: who comes last would otherwise be settled for good, and matter.
            self.clock.spin(random.uniform(0, _LATE_S))
            call.begin()
            self.meet()
            before = self.clock.mark()
            output = _make_dense(solution(*call.args))
            marks.append((before, self.clock.mark()))
            is_ahead = is_ahead and not self.clock.has_passed(before)
            ahead += is_ahead
            odd = odd or find_oddity(output)
            self._look_at(output)
            self.kept.append(map_tensors(output, _copy))
        host_s = time.perf_counter() - start
        self.synchronize()
        spans = [self.clock.measure_ns(before, after) for before, after in marks]
        return BlockTimes([*map(float, spans)], host_s, ahead, odd)

    def run_untimed(self, calls: Sequence[Call], solution: Solution, spin_s: float) -> None:
        """Make each call once, without marks, and keep what it returns."""
        self.kept = []
        self.clock.hold_back(spin_s)
        for call in calls:
            call.begin()
            self.meet()
            self.kept.append(_make_dense(solution(*call.args)))
        self.synchronize()

    @property
    def output_bytes(self) -> int:
        """Bytes of the last output; 0 before the first call."""
        return sum(self._output_bytes)

    def _stagger(self, most: int) -> None:
        """Launch a random number of empty kernels, so that a call's launches lie at another place of the device's queue
        in each block: on an H200 some places are faster than others."""
        for _ in range(random.randrange(most)):
            self.clock.spin(0)

    def _look_at(self, output: Any) -> None:
        self._output_bytes = [tensor.nbytes for tensor in iterate_tensors(output)]

    def _poison(self) -> None:
        _poison(self._output_bytes, self._device)


def poison(results: Any, device: torch.device) -> None:
    """Allocate as much memory as these results did, fill it with NaN, and free it.

    The next result is likely to lie there: what a call does not write stays wrong.
    """
    # More tensors are refused in any case.
    few = itertools.islice(iterate_tensors(results), MOST_TENSORS)
    _poison([tensor.nbytes for tensor in few], device)


def _poison(sizes: Sequence[int], device: torch.device) -> None:
    taken = [torch.full((count,), _POISON, dtype=torch.uint8, device=device) for count in sizes]
    del taken


def _make_barrier(device: torch.device) -> Callable[[], None]:
    """Return a barrier between the ranks, on the device, over symmetric memory of our own. Collective."""
    import torch.distributed._symmetric_memory as symm_mem

    rendezvous: Any = symm_mem.rendezvous
    buffer = symm_mem.empty(_OWN_SEGMENT, dtype=torch.uint8, device=device)
    handle = rendezvous(buffer, dist.group.WORLD)
    # The last one: should a candidate's buffer share our signal pad, its channels begin at the other end.
    channel = handle.signal_pad_size // (4 * handle.world_size) - 1
    return lambda: handle.barrier(channel)


def _meet_nobody() -> None:
    """A world of one has nobody to meet."""


def _make_dense(output: Any) -> Any:
    """Return the output with contiguous tensors: what the next kernel reads. A view costs its copy."""
    tensors = iterate_tensors(output)
    is_dense = all(one.layout is not torch.strided or one.is_nested or one.is_contiguous() for one in tensors)
    return output if is_dense else map_tensors(output, _make_contiguous)


def _make_contiguous(tensor: Tensor) -> Tensor:
    return tensor.contiguous() if tensor.layout is torch.strided and not tensor.is_nested else tensor


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()
