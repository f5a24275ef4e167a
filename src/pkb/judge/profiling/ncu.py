"""Profile one rank with NVIDIA's ncu, which runs every kernel several times to read the hardware's counters."""

import contextlib
import csv
import shutil
import statistics
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from pkb.base.printable import clean_line
from pkb.errors import UsageError
from pkb.failure import Failure
from pkb.platforms import Platform
from pkb.record import Verdict

_IMPORT_S = 300.0
_KERNEL = "Kernel Name"
_DURATION = "gpu__time_duration.sum"
_COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
_MICROSECONDS = {"n": 1e-3, "u": 1.0, "m": 1e3, "s": 1e6}
"""Microseconds per unit, by the first letter of the unit's name, which is ns or nsecond, and so on."""
_NOT_ALLOWED = "ERR_NVGPUCTRPERM"


@dataclass(frozen=True)
class KernelCounters:
    """The launches of one kernel. Percentages are means, relative to the GPU's peak; None where ncu counted nothing."""

    name: str
    calls: int
    us: float
    """Microseconds of all launches together."""
    compute: float | None
    memory: float | None


@dataclass(frozen=True)
class Ncu:
    """The files of one run of ncu: its report and its log."""

    folder: Path

    @property
    def report(self) -> Path:
        return self.folder / "profile.ncu-rep"

    @property
    def log(self) -> Path:
        return self.folder / "ncu.log"

    def make_wrapper(self) -> list[str]:
        """Return the command to put before the one that starts ranks; ncu profiles only where a rank tells it to."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in (self.report, self.log):
            leftover.unlink(missing_ok=True)
        # The nursery removes its own temporary folder while ncu still writes.
        command = ["env", f"TMPDIR={tempfile.gettempdir()}", "ncu", "--target-processes", "all"]
        command += ["--profile-from-start", "off", "--set", "basic", "--force-overwrite"]
        return [*command, "--export", str(self.report.resolve()), "--log-file", str(self.log.resolve())]

    def read_kernels(self) -> list[KernelCounters]:
        """Read the report, once all ranks have ended. Raise Failure when there is none."""
        if not self.report.is_file():
            raise Failure(Verdict.ENVIRONMENT, f"ncu wrote no report: {self.explain_failure()}", check="ncu")
        command = ["ncu", "--import", str(self.report), "--page", "raw", "--csv"]
        shown = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_IMPORT_S)
        return parse_report(shown.stdout)

    def explain_failure(self) -> str:
        return explain_failure(self.log.read_text(errors="replace") if self.log.is_file() else "")


def check_usable(platform: Platform, nproc: int) -> None:
    """Raise UsageError unless ncu can profile this many ranks on this platform."""
    if nproc != 1:
        raise UsageError(
            "ncu runs each kernel several times, and a kernel that waits for another rank would wait forever; "
            "use --profiler ncu with --nproc 1, or --profile for several ranks"
        )
    if not platform.has_kernel_profiler:
        raise UsageError(f"platform {platform.name} has no kernels that ncu can profile; use --profile")
    if not shutil.which("ncu"):
        raise UsageError("ncu is not on the PATH; install NVIDIA Nsight Compute, or use --profile")


def explain_failure(log: str) -> str:
    """Return why ncu failed, from what it printed, and what to do."""
    if _NOT_ALLOWED in log:
        return (
            f"this user may not read the GPU's counters ({_NOT_ALLOWED}); run as root, or put `options nvidia "
            "NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia-profiling.conf and restart the "
            "machine; a container must be started with --cap-add=SYS_ADMIN"
        )
    errors = [line for line in log.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    return (
        clean_line(errors[-1])
        if errors
        else "it did not say why; does `ncu python -c 'import torch; torch.ones(1).cuda()'` work?"
    )


def parse_report(text: str) -> list[KernelCounters]:
    """Parse the page `raw` as CSV (messages, a header, a row of units, a row per launch); the longest kernel first."""
    lines = text.splitlines()
    head = next((k for k, line in enumerate(lines) if f'"{_KERNEL}"' in line), len(lines))
    units, *launches = [*csv.DictReader(lines[head:])] or [{}]
    named: dict[str, list[dict[str, str]]] = defaultdict(list)
    for launch in launches:
        named[launch[_KERNEL]].append(launch)
    unit = _MICROSECONDS.get(units.get(_DURATION, "")[:1], 1.0)
    kernels = [_average_launches(name, same, unit) for name, same in named.items()]
    return sorted(kernels, key=lambda kernel: -kernel.us)


def _average_launches(name: str, launches: list[dict[str, str]], unit: float) -> KernelCounters:
    us, compute, memory = (_read_metric(launches, metric) for metric in (_DURATION, _COMPUTE, _MEMORY))
    return KernelCounters(name, len(launches), sum(us) * unit, _compute_mean(compute), _compute_mean(memory))


def _read_metric(launches: list[dict[str, str]], metric: str) -> list[float]:
    """Return a metric of all launches, without those that ncu could not count and writes as n/a."""
    found = []
    for launch in launches:
        with contextlib.suppress(ValueError):
            found.append(float(launch.get(metric, "").replace(",", "")))
    return found


def _compute_mean(values: list[float]) -> float | None:
    return statistics.fmean(values) if values else None
