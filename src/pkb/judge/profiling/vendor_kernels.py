"""Find kernels of vendors' libraries in a profile: the scratch track allows none.

The names come from the candidate's processes. The check finds what the screen and the operator count cannot see, for
example a library that was loaded by hand, but not a kernel under a false name.
"""

import re
from collections.abc import Iterable, Iterator

from pkb.failure import Failure
from pkb.judge.profiling.trace import Profile, take_profile
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.world import World
from pkb.record import Verdict

_VENDORS = re.compile(
    # Collectives, also those of torch's symmetric memory.
    r"^nccl|^void nccl|nvshmem|(one|two)_shot_all_reduce_kernel|multimem_(one_shot_|all_)\w+_kernel"
    # Products by cuBLAS and its generators, and convolutions.
    r"|^nvjet_|cublas|xmma|^(ampere|volta|turing|maxwell|hopper)_|^sm\d\d_\w*(gemm|conv|fprop|dgrad|wgrad|s\d{4})"
    r"|cutlass_\d|gemvx|gemv2|gemmk1|gemmSN|splitKreduce|^void dot_kernel|cudnn|implicit_convolve|conv_depthwise"
    # Attention, solvers and transforms as torch ships them.
    r"|pytorch_flash|fmha_cutlass|cufft|(regular|vector|composite\w*)_fft<|cusparse|cusolver|magma|^void trsm|getrf",
)


def find_vendor_kernels(names: Iterable[str]) -> list[str]:
    """Return those of the kernel names that belong to a vendor's library, sorted."""
    return sorted({name for name in names if _VENDORS.search(name)})


def check_kernels(world: World, setup: Setup, seeds: Seeds) -> None:
    """Profile a few calls. Raise Failure if one of them runs a kernel of a vendor's library."""
    profile = take_profile(world, setup, seeds)
    if profile.summary.notes:
        raise Failure(
            Verdict.CRASH,
            f"{profile.summary.notes[0]}; the scratch track needs the names of the kernels that every rank ran",
            check="library-kernel",
        )
    if vendor := find_vendor_kernels(_list_kernels(profile)):
        raise Failure(
            Verdict.CHEAT,
            f"ran {vendor[0][:80]} in the scratch track; write it yourself, or use --track any",
            check="library-kernel",
            kernels=vendor,
        )


def _list_kernels(profile: Profile) -> Iterator[str]:
    """Yield the names of all kernels of the device, however short they were."""
    events = profile.trace["traceEvents"] if profile.trace else []
    yield from (event["name"] for event in events if event.get("cat") == "kernel")
