"""References judged as their own candidates: each must be CORRECT."""

from collections.abc import Sequence
from functools import partial

from pkb.candidate import Candidate
from pkb.settings import JudgementSettings
from pkb.tools.selftest.bench import Bench, describe_judgement
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.outcome import Status, StepOutcome

SAMPLE = (
    ("1_allreduce", "float32"),
    ("13_gemm_allreduce", "bfloat16"),
    ("8_alltoall", "float32"),
    ("5_scatter", "float32"),
    ("31_fused_moe_fwd", "float32"),
    ("39_ulysses_attention_e2e", "bfloat16"),
    ("47_fsdp_step_e2e", "float32"),
    ("20_blocked_fp8_dequantize", "bfloat16"),
)
"""One problem for each way of moving data: sum, product and sum, exchange, root, uneven blocks, heads, step, float8."""


class _References(SelftestCheck):
    name = "references"
    shows = "Ranks start, communicate, and agree with themselves: references are CORRECT as their own candidates."
    advice = "see the reason in full: `pkb eval PROBLEM --candidate reference --out DIR`; please report the record"

    def plan(self, bench: Bench) -> Sequence[Step]:
        return [
            Step(f"{name} {dtype}", partial(judge_reference, name, dtype), Round.MORE if number else Round.FIRST)
            for number, (name, dtype) in enumerate(SAMPLE)
        ]

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        return f"{len(done)} are CORRECT as their own candidates at {done[0].facts['ranks']} ranks"


def judge_reference(name: str, dtype: str, bench: Bench) -> StepResult:
    setup = bench.pose(name, dtype=dtype)
    record = bench.judge_candidate(setup, Candidate.reference(setup.problem), JudgementSettings())
    text = str(record.verdict) if record.correct else f"{record.verdict}: {record.reason}"
    return StepResult(Status.OK if record.correct else Status.FAILED, text, describe_judgement(record))


REFERENCES = _References()
