"""Times of references that are kept: timed once, taken up again on the same machine, and refused on any other."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.commands import check_mistake, run_pkb
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.judge.timing.baseline_store import (
    SCHEMA,
    StoredTimes,
    describe_machine,
    describe_times,
    find_baselines,
    read_store,
    read_times,
)
from pkb.platforms import load_platforms
from pkb.problems.suite import Suite, load_problem
from pkb.protocol.compile_modes import COMPILE_OPTIONS, parse_modes
from pkb.runs import Damage
from pkb.settings import RIGORS, ProblemSettings

RELU = ["L1/19", "--suite", "kernelbench", "--size", "tiny"]
GRAPHS = "compile-cudagraphs"
FACTS = ("hardware", "ranks on", "torch", "triton", "Python", "timing method")


def pkb(*arguments: object, code: int = 0) -> str:
    ran = run_pkb(*arguments)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stderr if code else ran.stdout


def times(us: float = 50.0, rigor: str = "paper") -> dict[str, Any]:
    blocks = [[[us], [us]]] * 4
    known = {"us": us, "interval": [us, us], "blocks_us": blocks, "eager_us": 100.0, "compile_s": 1.0}
    return known | {"rigor": rigor, "when": "2026-01-02T03:04:05+00:00"}


@pytest.fixture
def here(judge: Judge) -> StoredTimes:
    return describe_times(judge.pose("L1/19"), judge.platform)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the command leaves it."""
    folder = tmp_path_factory.mktemp("store")
    said = pkb("baseline", *RELU, "--modes", "eager,cudagraphs", "--rigor", "quick", "--store", folder)
    assert f"L1_19_ReLU  {GRAPHS}  " in said
    assert "us (" in said
    assert "(CPU times), " in said
    assert "as fast as eager, compiled in " in said
    return folder


def test_a_file_says_what_was_timed_and_on_what(store: Path, here: StoredTimes) -> None:
    (path,) = store.rglob("*.json")
    assert path == here.find_path(store)
    assert path.name == "L1_19_ReLU-tiny-float32-w1.json"
    found = read_times(path)
    assert isinstance(found, StoredTimes)
    assert found.list_differences(here) == []
    assert tuple(found.machine) == FACTS
    eager, compiled = found.modes["eager"], found.modes[GRAPHS]
    assert compiled["compile_s"] > 1e-6 * compiled["us"]
    (calls,) = {len(block) for block in eager["blocks_us"]}
    assert 0.75 <= calls / RIGORS["quick"].calls_per_block <= 1
    assert len(compiled["blocks_us"]) == len(compiled["eager_blocks_us"]) >= 8
    assert 1 <= compiled["warm_up_calls"] / RIGORS["quick"].warm_up <= 1.5


def test_stored_times_stand_in_for_a_measurement(store: Path) -> None:
    options = ["--candidate", "reference", "--trials", 1, "--measure-perf", "--json", "--store", store]
    said = json.loads(pkb("eval", *RELU, *options, "--baselines", GRAPHS, "--reuse-baselines"))
    found, (path,) = said["timing"]["baselines"][GRAPHS], store.rglob("*.json")
    stored = json.loads(path.read_text())
    assert (found["stored"], found["paired"]) == (True, False)
    assert (found["fingerprint"], found["when"]) == (stored["fingerprint"], stored["modes"][GRAPHS]["when"])
    assert (found["us"], found["blocks_us"]) == (stored["modes"][GRAPHS]["us"], stored["modes"][GRAPHS]["blocks_us"])
    assert found["interval"][0] <= found["speedup"] <= found["interval"][1]
    assert found["drift"] == said["timing"]["reference_us"] / stored["modes"][GRAPHS]["eager_us"]


def test_a_second_run_does_only_what_is_missing(store: Path) -> None:
    (path,) = store.rglob("*.json")
    options = [*RELU, "--rigor", "quick", "--store", store]
    before = json.loads(path.read_text())
    assert "stored already" in pkb("baseline", *options, "--modes", "cudagraphs,eager")
    assert json.loads(path.read_text()) == before
    said = pkb("baseline", *options, "--modes", "eager", "--again")
    after = json.loads(path.read_text())
    assert "eager" in said
    assert after["modes"]["eager"]["blocks_us"] != before["modes"]["eager"]["blocks_us"]
    assert after["modes"][GRAPHS] == before["modes"][GRAPHS]


def test_the_list_says_what_is_valid_here(here: StoredTimes, tmp_path: Path) -> None:
    for problem in (here.problem, "L1_100_HingeLoss", "L1_2_Product"):
        replace(here, problem=problem, modes={"eager": times()}).save(tmp_path / "ours")
    lines = [line.split() for line in pkb("baseline", "--list", "--store", tmp_path / "ours").splitlines()[1:]]
    assert [(line[0], line[-1]) for line in lines] == [
        ("L1_2_Product", "yes"),
        (here.problem, "yes"),
        ("L1_100_HingeLoss", "yes"),
    ]
    other = replace(here, machine=here.machine | {"torch": "2.11"}, modes={"eager": times()})
    other.save(tmp_path / "other")
    damaged = tmp_path / "other" / "x" / "y" / "z.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    ran = run_pkb("baseline", "--list", "--store", tmp_path / "other")
    assert f"torch 2.11 stored, {here.machine['torch']} here" in ran.stdout
    assert f"skipped, damaged: {damaged}: not JSON" in ran.stderr
    assert "nothing is stored" in pkb("baseline", "--list", "--store", tmp_path / "empty")


@pytest.mark.parametrize("fact", FACTS)
def test_one_fact_that_differs_is_named_and_refused(here: StoredTimes, tmp_path: Path, fact: str) -> None:
    far = replace(here, machine=dict.fromkeys(here.machine, "other"), modes={GRAPHS: times()})
    near = replace(here, machine=here.machine | {fact: "other"}, modes={GRAPHS: times()})
    for one in (far, near):
        one.save(tmp_path)
    with pytest.raises(UsageError) as refusal:
        find_baselines(tmp_path, here, [GRAPHS], "quick")
    says = f"do not hold here: {fact} other stored, {here.machine[fact]} here; measure with `pkb baseline L1_19_ReLU`"
    assert says in str(refusal.value)


def test_a_problem_that_has_changed_is_refused(here: StoredTimes, tmp_path: Path) -> None:
    replace(here, posed=here.posed | {"source": "other"}, modes={GRAPHS: times()}).save(tmp_path)
    with pytest.raises(UsageError, match="source other stored"):
        find_baselines(tmp_path, here, [GRAPHS], "quick")


def test_what_was_never_timed_is_refused(here: StoredTimes, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no times of L1_19_ReLU-tiny-float32-w1 are stored in"):
        find_baselines(tmp_path, here, [GRAPHS], "quick")
    replace(here, modes={GRAPHS: times(rigor="quick")}).save(tmp_path)
    assert find_baselines(tmp_path, here, [GRAPHS], "quick")[GRAPHS]["fingerprint"] == here.fingerprint
    with pytest.raises(UsageError, match="lack cudagraphs at rigor paper; measure"):
        find_baselines(tmp_path, here, [GRAPHS], "paper")
    with pytest.raises(UsageError, match="lack default at rigor quick; measure"):
        find_baselines(tmp_path, here, [GRAPHS, "compile-default"], "quick")


def test_the_command_refuses_in_one_line(tmp_path: Path) -> None:
    options = ["eval", *RELU, "--candidate", "reference", "--reuse-baselines", "--store", tmp_path]
    said = pkb(*options, "--measure-perf", "--baselines", "all", code=2)
    assert said.startswith("pkb: no times of L1_19_ReLU-tiny-float32-w1 are stored")
    assert len(said.splitlines()) == 1
    check_mistake([*map(str, options), "--measure-perf"], "--reuse-baselines needs --baselines")
    check_mistake(["baseline"], "name problems, for example `all`")


def test_modes_have_torch_s_names_or_ours() -> None:
    assert parse_modes("eager, default,compile-cudagraphs,default") == ["eager", "compile-default", GRAPHS]
    assert parse_modes("all") == ["eager", *COMPILE_OPTIONS]
    for text, says in {
        "fast": "unknown baseline 'fast'; choose from all, eager, default",
        ",": "no mode named",
    }.items():
        with pytest.raises(UsageError, match=says):
            parse_modes(text)


DAMAGED = {
    "empty": ("", "not JSON"),
    "list": ("[1]", "not an object"),
    "newer": ('{"schema": 99}', "time the reference again"),
    "hollow": (f'{{"schema": {SCHEMA}, "fingerprint": ""}}', "has no 'problem'"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_is_named_and_not_fatal(here: StoredTimes, tmp_path: Path, kind: str) -> None:
    content, says = DAMAGED[kind]
    path = replace(here, modes={"eager": times()}).save(tmp_path)
    good = replace(here, machine=here.machine | {"torch": "2.11"}, modes={"eager": times()}).save(tmp_path)
    path.write_text(content)
    found, damaged = read_store(tmp_path)
    assert [one.find_path(tmp_path) for one in found] == [good]
    assert [one.path for one in damaged] == [path]
    assert says in damaged[0].what
    with pytest.raises(UsageError, match=f"cannot be read: {path}"):
        find_baselines(tmp_path, here, [GRAPHS], "quick")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"problem": "L1_20_LeakyReLU"}, "its content belongs in"),
        ({"machine": {"hardware": "x"}}, "its content belongs in"),
        ({"modes": {GRAPHS: {"us": 1.0}}}, "has no blocks_us, compile_s, eager_us, rigor, when"),
        ({"modes": [1]}, "modes is no object"),
    ],
)
def test_a_file_that_was_meddled_with(here: StoredTimes, tmp_path: Path, changed: dict[str, Any], says: str) -> None:
    path = replace(here, modes={GRAPHS: times()}).save(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    found = read_times(path)
    assert isinstance(found, Damage)
    assert says in found.what


def test_a_damaged_file_is_timed_anew(here: StoredTimes, tmp_path: Path) -> None:
    path = replace(here, modes={"eager": times()}).save(tmp_path)
    path.write_text("{")
    said = pkb("baseline", *RELU, "--modes", "eager", "--rigor", "quick", "--store", tmp_path)
    assert f"damaged, timed again: {path}: not JSON" in said
    assert isinstance(read_times(path), StoredTimes)


def test_a_mode_that_fails_is_told_and_the_next_is_timed(judge: Judge, tmp_path: Path) -> None:
    refusal = 'import sys; assert "torch._dynamo.backends.cudagraphs" not in sys.modules, "not this one"'
    source = load_problem("allreduce").path.read_text()
    (tmp_path / "1_allreduce.py").write_text(
        source.replace("    dist.all_reduce", f"    {refusal}\n    dist.all_reduce")
    )
    (problem,) = Suite(tmp_path).select("all")
    setup = judge.pose(problem, ProblemSettings(nproc=2))
    found = dict(judge.time_reference(setup, [GRAPHS, "eager"], RIGORS["quick"]))
    assert "not this one" in found[GRAPHS]["failed"]
    assert found["eager"]["us"] > 0
    assert {len(call) for block in found["eager"]["blocks_us"] for call in block} == {2}
    stored = replace(describe_times(setup, judge.platform), modes=found)
    stored.save(tmp_path)
    assert "failed" in find_baselines(tmp_path, stored, [GRAPHS], "quick")[GRAPHS]


def test_a_rank_alone_on_a_gpu_is_the_same_on_every_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"gpus": ["NVIDIA H200"], "driver": "580.1", "cuda": "13.0"}
    apart, shared = load_platforms()["gpus"], load_platforms()["shared-gpu"]
    for one in (apart, shared):
        monkeypatch.setattr(one, "describe", lambda: facts)
    assert describe_machine(apart, 1) == describe_machine(shared, 1)
    assert describe_machine(apart, 2)["ranks on"] == "gpus"
    assert describe_machine(shared, 1) | {
        "hardware": "NVIDIA H200",
        "driver": "580.1",
        "CUDA": "13.0",
    } == describe_machine(shared, 1)
