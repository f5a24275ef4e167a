"""Honest kernels, and honest candidates that look suspicious: all must be CORRECT, and those on a GPU get a time."""

from collections.abc import Sequence
from functools import partial

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.record import Record
from pkb.settings import JudgementSettings, Track
from pkb.tools.redteam import Attempt, judge_honest_example
from pkb.tools.selftest.bench import TIMED, Bench, describe_judgement, find_attempt, find_shipped_kernel
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.outcome import Status, StepOutcome

_KERNELS = (
    "triton/1_allreduce_triton.py",
    "triton/13_gemm_allreduce_triton.py",
    "triton/45_reducescatter_fused_rmsnorm_triton.py",
    "cuda/1_allreduce_cuda.py",
    "cuda/13_gemm_allreduce_cuda.py",
)
_EXAMPLES = ("counts_epochs", "idle_thread_pool", "compiles_dynamically")


class _Honest(SelftestCheck):
    name = "honest kernels"
    shows = "Kernels that move data between ranks by symmetric memory are CORRECT."
    advice = "see the reason in full: `pkb eval PROBLEM --candidate FILE --out DIR`; please report the record"

    def plan(self, bench: Bench) -> Sequence[Step]:
        # CUDA C++ is compiled for a GPU.
        kernels = [name for name in _KERNELS if bench.has_gpu or not name.startswith("cuda/")]
        rounds = [Round.FIRST, *[Round.MORE] * len(kernels)]
        return [
            *(Step(name, partial(_judge_kernel, name), order) for name, order in zip(kernels, rounds, strict=False)),
            *(Step(f"honest/{name}", partial(_judge_example, name)) for name in _EXAMPLES),
        ]

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        timed = [step for step in done if "timing" in step.facts]
        ratios = ", ".join(f"{step.facts['timing']['ratio']:.2f}" for step in timed)
        return f"{len(done)} are CORRECT" + (f"; {len(timed)} timed, speed-ups {ratios}" if timed else "")


def _judge_kernel(name: str, bench: Bench) -> StepResult:
    path = find_shipped_kernel(name)
    candidate = Candidate.read(path)
    if lacking := candidate.backend.find_missing():
        raise UsageError(lacking)
    dtype = "bfloat16" if bench.has_gpu else "float32"
    setup = bench.pose(path.stem.rpartition("_")[0], timed=bench.has_gpu, dtype=dtype)
    settings = JudgementSettings(track=Track.SCRATCH, rigor=TIMED if bench.has_gpu else None)
    return _describe(bench.judge_candidate(setup, candidate, settings))


def _judge_example(name: str, bench: Bench) -> StepResult:
    example = Attempt.read(find_attempt(f"honest/{name}.py"))
    if obstacle := example.find_obstacle(bench.judge.platform):
        raise UsageError(f"{name} {obstacle}")
    return _describe(judge_honest_example(bench.judge, example))


def _describe(record: Record) -> StepResult:
    text = str(record.verdict) if record.correct else f"{record.verdict}: {record.reason}"
    return StepResult(Status.OK if record.correct else Status.FAILED, text, describe_judgement(record))


HONEST = _Honest()
