"""One rank under NVIDIA's ncu, which runs every kernel several times over to count what the hardware did."""

import contextlib
import csv
import shutil
import statistics
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from pkb.errors import UsageError
from pkb.failure import Failure
from pkb.platforms import Platform
from pkb.platforms._gpu import Gpu
from pkb.record import Verdict

_IMPORT_S = 300.0
_KERNEL = "Kernel Name"
_DURATION = "gpu__time_duration.sum"
_COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
_MICROSECONDS = {"n": 1e-3, "u": 1.0, "m": 1e3, "s": 1e6}
"""By a unit's first letter: its name is ns or nsecond, and so on."""
_NOT_ALLOWED = "ERR_NVGPUCTRPERM"


@dataclass(frozen=True)
class Kernel:
    """The launches of one kernel. Percentages are means, of the most that the GPU can do; None where not counted."""

    name: str
    calls: int
    us: float
    """Of all launches together."""
    compute: float | None
    memory: float | None


@dataclass(frozen=True)
class Ncu:
    """Where one run of ncu leaves its report and what it says."""

    folder: Path

    @property
    def report(self) -> Path:
        return self.folder / "profile.ncu-rep"

    @property
    def log(self) -> Path:
        return self.folder / "ncu.log"

    def wrapper(self) -> list[str]:
        """What to put before the command that starts ranks. Looks only where a rank asks it to."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in (self.report, self.log):
            leftover.unlink(missing_ok=True)
        # The nursery removes its own temporary folder while ncu still writes.
        command = ["env", f"TMPDIR={tempfile.gettempdir()}", "ncu", "--target-processes", "all"]
        command += ["--profile-from-start", "off", "--set", "basic", "--force-overwrite"]
        return [*command, "--export", str(self.report.resolve()), "--log-file", str(self.log.resolve())]

    def kernels(self) -> list[Kernel]:
        """What the report says, once all ranks have ended. Raises Failure when there is none."""
        if not self.report.is_file():
            raise Failure(Verdict.ENVIRONMENT, f"ncu wrote no report: {self.trouble()}", check="ncu")
        command = ["ncu", "--import", str(self.report), "--page", "raw", "--csv"]
        shown = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_IMPORT_S)
        return parse(shown.stdout)

    def trouble(self) -> str:
        return trouble(self.log.read_text(errors="replace") if self.log.is_file() else "")


def refuse(platform: Platform, nproc: int) -> None:
    """Raise UsageError where ncu cannot be used."""
    if nproc != 1:
        raise UsageError(
            "ncu runs each kernel several times over, and one that waits for another rank would wait for ever; "
            "use --profile ncu with --nproc 1, or --profile alone for several ranks"
        )
    if not isinstance(platform, Gpu):
        raise UsageError(f"platform {platform.name} has no kernels that ncu could look at; use --profile alone")
    if not shutil.which("ncu"):
        raise UsageError("ncu is not on the PATH; install NVIDIA Nsight Compute, or use --profile alone")


def trouble(log: str) -> str:
    """Why ncu failed, from what it printed, and what to do."""
    if _NOT_ALLOWED in log:
        return (
            f"this user may not read the GPU's counters ({_NOT_ALLOWED}); run as root, or put `options nvidia "
            "NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia-profiling.conf and restart the "
            "machine; a container must be started with --cap-add=SYS_ADMIN"
        )
    said = [line for line in log.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    return said[-1] if said else "it did not say why; does `ncu python -c 'import torch; torch.ones(1).cuda()'` work?"


def parse(text: str) -> list[Kernel]:
    """Kernels of the page `raw` as CSV, the longest first: messages, a header, a row of units, a row per launch."""
    lines = text.splitlines()
    head = next((k for k, line in enumerate(lines) if f'"{_KERNEL}"' in line), len(lines))
    units, *launches = [*csv.DictReader(lines[head:])] or [{}]
    named: dict[str, list[dict[str, str]]] = defaultdict(list)
    for launch in launches:
        named[launch[_KERNEL]].append(launch)
    unit = _MICROSECONDS.get(units.get(_DURATION, "")[:1], 1.0)
    kernels = [_kernel(name, same, unit) for name, same in named.items()]
    return sorted(kernels, key=lambda kernel: -kernel.us)


def _kernel(name: str, launches: list[dict[str, str]], unit: float) -> Kernel:
    us, compute, memory = (_numbers(launches, metric) for metric in (_DURATION, _COMPUTE, _MEMORY))
    return Kernel(name, len(launches), sum(us) * unit, _mean(compute), _mean(memory))


def _numbers(launches: list[dict[str, str]], metric: str) -> list[float]:
    """Without those that ncu could not count, which it writes as n/a."""
    found = []
    for launch in launches:
        with contextlib.suppress(ValueError):
            found.append(float(launch.get(metric, "").replace(",", "")))
    return found


def _mean(values: list[float]) -> float | None:
    return statistics.fmean(values) if values else None
