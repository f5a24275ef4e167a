"""What the harness will launch in a rank, launched once while nobody waits for it.

A GPU's driver loads a kernel when it is first used, and a library when it is first called, in every rank anew.
"""

import torch

from pkb.judge.calls import bump
from pkb.judge.compare import raw
from pkb.judge.digest import digests
from pkb.judge.excerpts import excerpted
from pkb.judge.oracle import widened
from pkb.judge.stopwatch import poison

_SIDE = 64


def exercise(device: torch.device) -> None:
    """Draw, poison, compare, cut, digest, widen, multiply and change something."""
    chance = torch.Generator(device)
    for dtype in (torch.float32, torch.bfloat16):
        values = torch.randn(_SIDE, _SIDE, generator=chance, device=device, dtype=dtype)
        poison([values], device)
        torch.equal(raw(values), raw(values.clone()))
        excerpted(values, [[0, 1], [1, 2]])
        digests([values], 0)
        widened([values])
        torch.matmul(values, values)
        bump([values], [values + 1], 0.0, 0.0)
