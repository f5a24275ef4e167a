"""Find kernels of vendors' libraries in a profile: the scratch track allows none.

The names come from the candidate's processes. The check finds what the screen and the operator count cannot see, for
example a library that was loaded by hand, but not a kernel under a false name.
"""

import re
from collections.abc import Iterable

from pkb.failure import Failure
from pkb.judge.profiling.trace import take_profile
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.world import World
from pkb.record import Verdict

_VENDORS = re.compile(
    # Collectives; products by cuBLAS and its generators; convolutions; attention and transforms as torch ships them.
    r"^nccl|^void nccl|nvshmem|^nvjet_|cublas|xmma|^(ampere|volta|turing|maxwell|hopper)_|cutlass_\d|gemvx|gemv2|gemmk1"
    r"|splitKreduce|cudnn|pytorch_flash|fmha_cutlass|cufft|cusparse|magma",
)


def find_vendor_kernels(names: Iterable[str]) -> list[str]:
    """Return those of the kernel names that belong to a vendor's library, sorted."""
    return sorted({name for name in names if _VENDORS.search(name)})


def check_kernels(world: World, setup: Setup, seeds: Seeds) -> None:
    """Profile a few calls. Raise Failure if one of them runs a kernel of a vendor's library."""
    found = take_profile(world, setup, seeds).summary
    names = [kernel.name for kernel in found.top] if found.of == "device kernels" else []
    if vendor := find_vendor_kernels(names):
        raise Failure(
            Verdict.CHEAT,
            f"ran {vendor[0][:80]} in the scratch track; write it yourself, or use --track any",
            check="library-kernel",
            kernels=vendor,
        )
