"""What the harness will launch in a rank, launched once while nobody waits for it.

A GPU's driver loads a kernel when it is first used, and a library when it is first called, in every rank anew.
"""

import torch

from pkb.base.tensors import view_bytes
from pkb.protocol.digest import digests
from pkb.protocol.spot_check import excerpted
from pkb.rank.call import bump
from pkb.rank.oracle import widened
from pkb.rank.stopwatch import poison

_SIDE = 64


def exercise(device: torch.device) -> None:
    """Draw, poison, compare, cut, digest, widen, multiply and change something."""
    chance = torch.Generator(device)
    for dtype in (torch.float32, torch.bfloat16):
        values = torch.randn(_SIDE, _SIDE, generator=chance, device=device, dtype=dtype)
        poison([values], device)
        torch.equal(view_bytes(values), view_bytes(values.clone()))
        excerpted(values, [[0, 1], [1, 2]])
        digests([values], 0)
        widened([values])
        torch.matmul(values, values)
        bump([values], [values + 1], 0.0, 0.0)
