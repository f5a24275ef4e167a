"""Launch the harness's own kernels once, while nothing waits for them.

A GPU's driver loads a kernel when it is first used, and a library when it is first called, in every rank anew.
"""

import torch

from pkb.base.tensors import view_bytes
from pkb.protocol.digest import digest_all
from pkb.protocol.sent_inputs import bump
from pkb.protocol.spot_check import cut_pieces
from pkb.rank.oracle import widen
from pkb.rank.stopwatch import poison

_ROWS = 64


def warm_up_kernels(device: torch.device) -> None:
    """Draw, poison, compare, cut, digest, widen, multiply and change a tensor."""
    generator = torch.Generator(device)
    for dtype in (torch.float32, torch.bfloat16):
        values = torch.randn(_ROWS, _ROWS, generator=generator, device=device, dtype=dtype)
        poison([values], device)
        torch.equal(view_bytes(values), view_bytes(values.clone()))
        cut_pieces(values, [[0, 1], [1, 2]])
        digest_all([values], 0)
        widen([values])
        torch.matmul(values, values)
        bump([values], [values + 1], 0.0, 0.0)
