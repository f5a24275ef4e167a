"""Suites of models: how they are named, listed and read, ours and other people's."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.commands import run_pkb
from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.problems.kernelbench import load_module_at
from pkb.problems.suite import Suite, find_suite, load_problem
from pkb.runs import PROBLEM, find_problem_number
from pkb.settings import ProblemSettings

OURS = Path(__file__).parents[1] / "models"
PUBLISHED = '''import torch
import torch.nn as nn

class Model(nn.Module):
    """
    Multiplies by a weight.
    """
    def __init__(self, size: int):
        super(Model, self).__init__()
        self.weight = nn.Parameter(torch.ones(size))
        # A constructor may look at values.
        self.rates = [x.item() for x in torch.linspace(0, 1, 3)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight

batch_size = 16
dim = 100

def get_inputs():
    x = torch.rand(batch_size, dim)
    return [x]

def get_init_inputs():
    return [dim]  # Provide size
'''
CANDIDATE = PUBLISHED.replace("class Model(", "class ModelNew(").replace("super(Model,", "super(ModelNew,")


def pkb(*arguments: str) -> str:
    ran = run_pkb(*arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of KernelBench has its levels, and numbered files that are none of them."""
    for name in ("KernelBench/level1/3_Weight.py", "KernelBench/level2/3_Other_Weight.py", "scripts/1_run.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n" if "scripts" in name else PUBLISHED)
    return tmp_path


@pytest.mark.parametrize("key", ["L1/19", "l1/19", "1/19", "L1_19_ReLU", "19_ReLU", "relu"])
def test_every_spelling_finds_the_model(key: str) -> None:
    problem = find_suite("kernelbench").load(key)
    assert (problem.stem, problem.category, problem.id) == ("L1_19_ReLU", "level1", 19)


def test_selections() -> None:
    stems = lambda text: [problem.stem.split("_", 2)[:2] for problem in Suite(OURS).select(text)]  # noqa: E731
    assert stems("all") == [["L2", "7"], ["L3", "4"]]
    assert stems("L3/1-9") == stems("level3") == [["L3", "4"]]
    assert stems("2/7,level3") == stems("all")
    with pytest.raises(UsageError, match="no problem in L4/1-9; there are L2/7 to L3/4"):
        Suite(OURS).select("L4/1-9")


def test_a_number_of_several_levels_is_asked_back(checkout: Path) -> None:
    with pytest.raises(UsageError, match="may be any of L1/3, L2/3; say which"):
        Suite(checkout).load("3")


def test_keys_with_a_level_need_no_suite() -> None:
    assert load_problem("L1/19").stem == load_problem("L1_19_ReLU").stem == "L1_19_ReLU"
    assert load_problem("1").stem == "1_allreduce"


def test_run_folders_of_models_are_found_and_sorted() -> None:
    stems = ["2_allgather", "L1_19_ReLU", "L1_100_HingeLoss", "L4_1_EleutherAI-gpt-neo-2p7B_bs32_seq256"]
    assert all(map(PROBLEM.fullmatch, stems))
    assert sorted(stems, key=find_problem_number) == stems


def test_listing_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    level = tmp_path / "level4"
    level.mkdir()
    needy = PUBLISHED.replace("import torch\n", '"""Needs more."""\nimport transformers\nimport torch\n', 1)
    (level / "1_some-model_bs2.py").write_text(needy)
    constant = (
        f'"""Always 0."""\n{PUBLISHED}\nPROBLEM = ModelProblem(tiny={{}}, hidden={{}}, degenerate="minus itself")\n'
    )
    (level / "2_constant.py").write_text(constant)
    monkeypatch.setitem(sys.modules, "transformers", None)
    first, second = json.loads(pkb("list", "--suite", str(tmp_path), "--json"))
    assert (first["title"], first["sizes"], first["worlds"]) == ("Needs more.", {"paper": ["paper"]}, [1])
    assert second["degenerate"] == "minus itself"
    with pytest.raises(UsageError, match=re.escape("pip install -e '.[kernelbench]'")):
        Suite(tmp_path).load("L4/1")


def test_a_checkout_is_a_suite(judge: Judge, checkout: Path) -> None:
    problem, other = Suite(checkout).select("all")
    assert (problem.stem, other.stem) == ("L1_3_Weight", "L2_3_Other_Weight")
    assert problem.show_source() == PUBLISHED
    assert [*problem.sizes] == ["paper"]
    record = judge.judge(judge.pose(problem, ProblemSettings(trials=1)), Candidate.of(CANDIDATE.encode()))
    assert record.correct, record.reason
    assert (record.setup.size, record.setup.state, record.setup.inputs) == ("paper", "by name", "sound")
    assert "hidden" not in record.reason
    # Its weights are 1 in the public convention, and may be left out.
    lazy = CANDIDATE.replace("x * self.weight", "x * 1.0").encode()
    assert not judge.judge(judge.pose(problem, ProblemSettings(trials=1)), Candidate.of(lazy)).correct
    assert judge.judge(judge.pose(problem, ProblemSettings(trials=1, inputs="published")), Candidate.of(lazy)).correct


def test_the_published_table_is_a_suite(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"code": PUBLISHED, "level": 2, "name": name, "problem_id": k} for k, name in ((4, "4_A.b"), (5, "B"))]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "tasks.parquet")
    suite = find_suite(str(tmp_path / "tasks.parquet"))
    assert [problem.stem for problem in suite.problems()] == ["L2_4_A_b", "L2_5_B"]
    parquet.write_table(pyarrow.table({"code": []}), tmp_path / "other.parquet")
    with pytest.raises(UsageError, match="has no column level"):
        find_suite(str(tmp_path / "other.parquet"))
    with pytest.raises(UsageError, match="cannot read the table"):
        find_suite(str(tmp_path / "nowhere.parquet"))


def test_constants_are_replaced_and_what_follows_from_them(tmp_path: Path) -> None:
    path = tmp_path / "1_sized.py"
    head = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n@dataclass\nclass A:\n    x: int\n\n"
    )
    path.write_text(f"{head}size = 3\ntwice = (2 * size, size)\nPROBLEM = None\n")
    assert load_module_at(path, {"size": 5}).twice == (10, 5)
    assert load_module_at(path, {}).twice == (6, 3)
    with pytest.raises(UsageError, match="has no constant other"):
        load_module_at(path, {"other": 1})


def test_show_has_one_self_contained_file() -> None:
    shown = Suite(OURS).load("2/7").show_source()
    assert "pkb" not in shown
    assert "PROBLEM" not in shown
    names: dict[str, object] = {}
    exec(shown, names)
    assert {"Model", "get_inputs", "get_init_inputs", "batch_size"} <= names.keys()


@pytest.mark.parametrize(
    ("command", "says"),
    [("show", "class Model"), ("inspect", "x: float32[32, 16]"), ("dryrun --candidate reference", "float32[32, 24]")],
)
def test_commands_take_a_suite_of_models(command: str, says: str) -> None:
    verb, *options = command.split()
    assert says in pkb(verb, "L2/7", "--suite", str(OURS), *options)


def test_the_cost_is_counted_without_values() -> None:
    problem = Suite(OURS).load("2/7")
    cost = problem.cost(problem.case("paper", "bfloat16"))
    assert cost.flops == 2 * 256 * 128 * 512
    weights, running = 128 * 512 + 4 * 512, 2 * 512
    assert cost.hbm == 2 * (256 * 128 + 256 * 512 + weights + running) + 8
    assert problem.compute_floor(problem.case("paper", "bfloat16")).hbm == 2 * 256 * 512


def test_what_was_drawn_first_does_not_decide_where_later_draws_are_made() -> None:
    """torch notes once, in a process, which functions obey a context's device."""
    script = """
import torch
from pkb.problems.sound_weights import draw_signed
with torch.device("cpu"), draw_signed():
    torch.rand(1)
with torch.device("meta"):
    print(torch.rand(1).is_meta)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=True)
    assert ran.stdout == "True\n"
