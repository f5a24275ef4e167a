"""A candidate must not replace clocks, collectives, or the functions that results are taken with."""

import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.checks import Breach, Check, Observations
from pkb.settings import Track

_CRITICAL: dict[Any, tuple[str, ...]] = {
    time: ("perf_counter", "perf_counter_ns", "monotonic", "time"),
    torch: ("empty", "equal", "allclose", "full", "sum", "where"),
    torch.cuda: ("Event", "synchronize", "current_stream", "_sleep"),
    torch.cuda.Event: ("record", "elapsed_time", "query", "synchronize"),
    Tensor: ("clone", "copy_", "contiguous", "cpu", "data_ptr", "detach", "numpy", "reshape", "stride", "view"),
    dist: (
        *("all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single"),
        *("barrier", "batch_isend_irecv", "broadcast", "gather", "irecv", "isend", "recv", "reduce", "reduce_scatter"),
        *("reduce_scatter_tensor", "scatter", "send"),
    ),
}


class PatchCheck(Check):
    name = "patched"
    report_type = list[str]

    def __init__(self, observer: Observations):
        super().__init__(observer)
        self._before = _identify_functions()

    def report(self) -> list[str]:
        """Return the names of functions that are not what they were."""
        return [name for name, identity in _identify_functions().items() if self._before[name] != identity]

    @staticmethod
    def conclude(reports: Sequence[list[str]], track: Track) -> Breach | None:
        for rank, names in enumerate(reports):
            if names:
                reason = f"rank {rank} replaced {', '.join(names)}; leave what is not yours as it is"
                return Breach("CHEAT", reason, rank)
        return None


def _identify_functions() -> dict[str, int]:
    return {
        f"{owner.__name__}.{name}": id(getattr(owner, name, None))
        for owner, names in _CRITICAL.items()
        for name in names
    }


CHECK = PatchCheck
