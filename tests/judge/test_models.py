"""Models as problems: how a ModelNew is built and judged, and what becomes of faulty ones."""

from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.judge.setup.setup import BY_NAME, BY_SEED
from pkb.problems.problem import Problem
from pkb.problems.suite import Suite, load_file, load_problem
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, ProblemSettings, Rigor
from pkb.trial import Trial, TrialKind

SUITE = Suite(Path(__file__).parents[1] / "models")
DROPOUT, RECURRENT = SUITE.load("L2/7"), SUITE.load("L3/4")
RIGHT = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, dropout_p):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.norm = nn.BatchNorm1d(out_features)
        self.scale = nn.Parameter(torch.ones(out_features))

    def forward(self, x):
        y = F.linear(x, self.linear.weight, self.linear.bias)
        y = (y - y.mean(0)) * torch.rsqrt(y.var(0, correction=0) + self.norm.eps)
        out = F.relu((y * self.norm.weight + self.norm.bias) * self.scale)
        return out
"""


def ending(*lines: str) -> str:
    """RIGHT with other lines at the end of its forward."""
    return RIGHT.replace("return out", "\n        ".join(lines))


def judged(judge: Judge, source: str, problem: Problem = DROPOUT, dtype: str = "float32", **posed: str) -> Record:
    setup = judge.pose(problem, ProblemSettings(trials=2, dtype=dtype, **posed))  # type: ignore[arg-type]
    return judge.judge(setup, Candidate.of(source.encode()))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("problem", [load_problem("L1/19"), DROPOUT, RECURRENT], ids=lambda p: p.stem)
def test_references_judge_themselves(judge: Judge, problem: Problem, dtype: str) -> None:
    for inputs in ("sound", "published"):
        setup = judge.pose(problem, ProblemSettings(trials=2, dtype=dtype, inputs=inputs))
        record = judge.judge(setup, Candidate.reference(problem))
        assert record.correct, record.reason
        assert (record.setup.inputs, record.setup.size, record.setup.world) == (inputs, "tiny", 1)


def test_another_model_with_the_same_names_is_given_the_same_weights(judge: Judge) -> None:
    record = judged(judge, RIGHT)
    assert record.correct, record.reason
    assert record.setup.state == BY_NAME
    assert "a hidden size + a probe" in record.reason


def test_other_names_leave_the_weights_to_the_constructor(judge: Judge) -> None:
    source = RIGHT.replace("self.linear", "self.first")
    record = judged(judge, source)
    assert record.correct, record.reason
    assert record.setup.state == BY_SEED
    assert "its constructor's" in record.reason


def test_what_is_computed_from_weights_leaves_them_to_the_constructor(judge: Judge) -> None:
    kept = "        self.t = self.linear.weight.detach().t().clone()\n        self.norm ="
    source = RIGHT.replace("        self.norm =", kept)
    source = source.replace("F.linear(x, self.linear.weight, self.linear.bias)", "x @ self.t + self.linear.bias")
    record = judged(judge, source)
    assert record.correct, record.reason
    assert record.setup.state == BY_SEED


def test_the_public_convention_has_one_size_and_no_probe(judge: Judge) -> None:
    source = ending("assert len(x) == 32 and x.min() >= 0", "return out")
    record = judged(judge, source, inputs="published")
    assert record.correct, record.reason
    assert record.reason == "all 6 results right (2 trials x 3 calls)"
    assert judged(judge, source).verdict is Verdict.CRASH


def test_every_call_has_the_weights_of_its_trial(judge: Judge, tmp_path: Path) -> None:
    source = RIGHT.replace("        y = F", "        print(float(self.linear.weight.sum()))\n        y = F", 1)
    setup = judge.pose(DROPOUT, ProblemSettings(trials=2))
    assert judge.judge(setup, Candidate.of(source.encode()), out=tmp_path).correct
    sums = (tmp_path / "logs" / "rank_0.txt").read_text().split()
    trials = [sums[k : k + 3] for k in range(0, len(sums), 3)]
    assert len(trials) == 4
    assert all(len(set(trial)) == 1 for trial in trials)
    assert len({trial[0] for trial in trials}) == 4


_WITHOUT_NORM = (
    RIGHT.replace("        self.norm = nn.BatchNorm1d(out_features)\n", "")
    .replace("self.norm.eps", "1e-5")
    .replace("y * self.norm.weight + self.norm.bias", "y + 0.5")
)
_FIXED_SIZES = "(self, _, __, dropout_p, in_features=16, out_features=24)"
_EVAL_MODE = "y = F.batch_norm(y, self.norm.running_mean, self.norm.running_var)"
FAULTS = {
    "no ModelNew": ("class Model: pass", "BUILD_FAILED", "defines no `ModelNew`"),
    "other constructor arguments": (RIGHT.replace("dropout_p", "p, q"), "BUILD_FAILED", "missing 1 required"),
    "missing state": (_WITHOUT_NORM, "WRONG", "elements differ"),
    "sizes of its own": (
        RIGHT.replace("(self, in_features, out_features, dropout_p)", _FIXED_SIZES),
        "CRASH",
        "take sizes from the constructor's arguments",
    ),
    "the last output": (
        ending("last, self.last = getattr(self, 'last', out), out", "return last.clone()"),
        "WRONG",
        "call 1, output 0",
    ),
    "one output for all calls": (
        ending("self.out = getattr(self, 'out', out)", "return self.out.copy_(out)"),
        "WRONG",
        "shares memory with the result of call 0",
    ),
    "secretly half": (
        RIGHT.replace("F.linear(x, self.linear.weight, self.linear.bias)", "self.linear.half()(x.half()).float()"),
        "WRONG",
        "elements differ",
    ),
    "input changed": (RIGHT.replace("y = F", "x.add_(1e-3)\n        y = F"), "WRONG", "changed its argument x"),
    "freed memory": (
        ending(
            "import ctypes",
            "same = (ctypes.c_float * out.numel()).from_address(out.data_ptr())",
            "return torch.frombuffer(same, dtype=torch.float32).view(out.shape)",
        ),
        "WRONG",
        "output 0: ",
    ),
    "batch norm in eval mode": (RIGHT.replace("y = (y -", f"{_EVAL_MODE}; _ = (y -"), "WRONG", "elements differ"),
    "no bias of the norm": (RIGHT.replace(" + self.norm.bias", ""), "WRONG", "elements differ"),
    "no scale": (RIGHT.replace(") * self.scale", ")"), "WRONG", "elements differ"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(judge: Judge, fault: str) -> None:
    source, verdict, says = FAULTS[fault]
    setup = judge.pose(DROPOUT, ProblemSettings(trials=2))
    record = judge.judge(setup, Candidate.of(source.encode()), JudgementSettings(screen=False))
    assert (record.verdict, says in record.reason) == (verdict, True), record.reason


def test_draws_inside_a_forward_agree_with_the_oracle_s(judge: Judge) -> None:
    setup = judge.pose(RECURRENT, ProblemSettings(trials=2))
    calls = judge.references.get(setup, judge.pool, judge.seeds).calls.values()
    assert all(0 < call.outputs[0].own.rms < 1e-5 for call in calls)


def test_active_dropout_is_the_oracle_s_too(judge: Judge) -> None:
    setup = judge.pose(DROPOUT, ProblemSettings(trials=1, size="paper"))
    calls = judge.references.get(setup, judge.pool, judge.seeds).calls
    assert 0 < calls[Trial(TrialKind.CHECK), 0, 0].outputs[0].own.rms < 1e-5
    assert judge.judge(setup, Candidate.reference(DROPOUT)).correct


def test_a_model_can_be_timed_and_profiled(judge: Judge, tmp_path: Path) -> None:
    setup = judge.pose(DROPOUT, ProblemSettings(trials=1))
    rigor = Rigor("few", 2, 1.0, least_pairs=2, calls_per_block=4, most_pairs=2, checked_blocks=2)
    record = judge.judge(
        setup, Candidate.of(RIGHT.encode()), JudgementSettings(rigor=rigor, profile=True), out=tmp_path
    )
    assert record.correct, record.reason
    assert record.timing is not None
    # Of two blocks at the least, and of every run under the judge's clock.
    assert record.timing.checked_calls >= 2 + 3
    assert record.profile is not None
    assert (tmp_path / "trace.json").is_file()


def test_a_model_that_is_only_right_until_it_is_timed_is_found(judge: Judge) -> None:
    source = ending("self.calls = getattr(self, 'calls', 0) + 1", "return out if self.calls <= 3 else out + 0.1")
    rigor = Rigor("few", 4, 1.0, least_pairs=2, calls_per_block=4, most_pairs=2, checked_blocks=2)
    record = judge.judge(
        judge.pose(DROPOUT, ProblemSettings(trials=1)), Candidate.of(source.encode()), JudgementSettings(rigor=rigor)
    )
    assert (record.verdict, record.evidence.check) == (Verdict.WRONG, "timed-values")


def test_models_run_alone(judge: Judge) -> None:
    with pytest.raises(UsageError, match=r"a model runs on one rank. World sizes that fit: 1 \(--nproc\)"):
        judge.pose(DROPOUT, ProblemSettings(nproc=4))
    with pytest.raises(UsageError, match="choose from tiny, paper"):
        judge.pose(DROPOUT, ProblemSettings(size="large"))
    with pytest.raises(UsageError, match="choose from sound, published"):
        judge.pose(DROPOUT, ProblemSettings(inputs="random"))


LARGE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.double().sin().to(x.dtype)


rows = 640


def get_inputs():
    return [torch.rand(rows, 8192)]


def get_init_inputs():
    return []
"""


def test_large_results_are_compared_in_pieces(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "1_large.py"
    path.write_text(LARGE)
    problem = load_file(path)
    new = LARGE.replace("class Model(", "class ModelNew(")
    setup = judge.pose(problem, ProblemSettings(trials=1, calls=2))
    assert judge.judge(setup, Candidate.of(new.encode())).correct
    record = judge.judge(setup, Candidate.of(_spoiled(new, "[-1, -3] += 0.1")), JudgementSettings(screen=False))
    assert (record.verdict, record.evidence.details["index"]) == (Verdict.WRONG, [639, 8189])
    assert record.evidence.details["total"] == 1 << 20
    assert not judge.judge(setup, Candidate.of(_spoiled(new, "[300:320] = 0"))).correct


def _spoiled(source: str, how: str) -> bytes:
    computed = "x.double().sin().to(x.dtype)"
    return source.replace(f"return {computed}", f"y = {computed}\n        y{how}\n        return y").encode()


def test_heavy_calls_are_made_one_at_a_time(judge: Judge) -> None:
    assert judge.pose("L1/19", ProblemSettings(size="paper")).calls == 1
    assert judge.pose("L1/19", ProblemSettings(size="tiny")).calls == 3
