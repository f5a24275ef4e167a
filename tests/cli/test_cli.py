"""The verbs as a user runs them, in the process of the tests."""

import json
from pathlib import Path

import pytest

import pkb
from helpers.commands import check_mistake, run_pkb

ROOT = Path(__file__).parents[2]
SOLUTIONS = ROOT / "solutions" / "triton"
REFERENCE = ["--candidate", "reference"]


def test_list_and_show() -> None:
    rows = json.loads(run_pkb("list", "--json").stdout)
    assert rows[0]["name"] == "allreduce"
    assert rows[0]["sizes"]["tiny"] == [16, 8]
    shown = run_pkb("show", "13").stdout
    assert "def solution(A_local" in shown
    assert "flops" in shown


def test_show_counts_the_work_of_a_model() -> None:
    facts = json.loads(run_pkb("show", "L1/1", "--suite", "kernelbench", "--dtype", "float32", "--json").stdout)
    assert facts["costs"]["paper"]["flops"] == 2 * 4096**3
    assert "class Model" in facts["shown"]


def test_to_say_how_to_time_is_to_ask_for_it() -> None:
    ran = run_pkb("eval", "1", *REFERENCE, "--nproc", "1", "--trials", "1", "--rigor", "quick", "--json")
    assert json.loads(ran.stdout)["timing"]["rigor"] == "quick", ran.stderr


def test_lint_prints_a_page_with_a_total() -> None:
    ran = run_pkb("lint", "1", "--nproc", "2", "--dtype", "float32", "--trials", "1", "--markdown")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "`pkb lint 1 --nproc 2 --dtype float32 --trials 1 --markdown`" in ran.stdout
    head, _, row = (line.strip("| ").split(" | ") for line in ran.stdout.splitlines() if line.startswith("|"))
    found = dict(zip(head, row, strict=True))
    assert (found["problem"], found["survived"], found["right"]) == ("1_allreduce", "0", "passed")
    total = f"In all: 1 passed, {found['rejected']} rejected"
    assert ran.stdout.splitlines()[-1].startswith(total)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["eval", "allreduc", *REFERENCE], "did you mean allreduce"),
        (["eval", "L3/12", *REFERENCE], "need --suite kernelbench"),
        (["eval", "L1/1-20", *REFERENCE], "need --suite kernelbench"),
        (["eval", "1", "--candidate", "/no/such/file.py"], "cannot read the candidate /no/such/file.py: No such file"),
        (["eval", "1", "--candidate", "/"], "cannot read the candidate /: it is a folder, not a file"),
        (["eval", "17", *REFERENCE, "--nproc", "3"], "the 8 heads are a multiple of the world size"),
        (["eval", "1", *REFERENCE, "--dtype", "int4"], "unknown dtype 'int4'"),
        (["eval", "1", *REFERENCE, "--size", "huge"], "no size 'huge'; choose from tiny, paper, large"),
        (["eval", "1", *REFERENCE, "--platform", "tpu"], "unknown platform 'tpu'; choose from auto"),
        (["eval", "1", *REFERENCE, "--m", "4"], "give --m and --n together"),
        (["lint", "1", "--dtype", "float31"], "unknown dtype 'float31'"),
        (["eval", "1", *REFERENCE, "--sandbox", "on"], "choose from auto, require, off"),
        (["eval", "1"], "either --candidate FILE, or --solutions-dir DIR with --backend NAME"),
        (["eval", "9", "--solutions-dir", str(SOLUTIONS), "--backend", "triton"], "problems that have a file there"),
        (["eval", "1", *REFERENCE, "--profile"], "name a folder for the traces with --out DIR"),
        (["eval", "1", *REFERENCE, "--profiler", "torch"], "name a folder for the traces with --out DIR"),
        (["eval", "1", *REFERENCE, "--profiler", "ncu"], "use `pkb dryrun PROBLEM --candidate FILE --profiler ncu`"),
        (["dryrun", "1", *REFERENCE, "--profiler", "ncu"], "use --profiler ncu with --nproc 1"),
        (["dryrun", "1", *REFERENCE, "--profiler", "nsys"], "unknown profiler 'nsys'; choose from torch, ncu"),
        (["show", "nothing_like_it"], "no problem or category"),
        (["inspect", "/no/such/folder"], "no problem or category"),
        (["list", "--category", "Tensor"], "no category 'Tensor'; there are"),
        (["eval", "1", "--candidat", "x"], "No such option: --candidat"),
        (["eval"], "Example: pkb eval 1-8,13 --solutions-dir"),
        (["eval", "1", *REFERENCE, "--nproc", "100"], "room for 64 ranks, not 100"),
        (["evl", "1"], "No such command 'evl'. Did you mean 'eval'?"),
    ],
)
def test_mistakes_get_one_clear_line(words: list[str], says: str) -> None:
    check_mistake(words, says)


def test_help_lists_every_verb_and_every_verb_has_an_example() -> None:
    ran = run_pkb("--help")
    assert ran.returncode == 0
    files = [path.stem.rstrip("_") for path in (ROOT / "src" / "pkb" / "cli").glob("[a-z]*.py")]
    assert len(files) == 19
    for verb in files:
        assert f"│ {verb} " in ran.stdout
        assert f"Example: pkb {verb}" in run_pkb(verb, "-h").stdout


def test_eval_writes_records_and_outputs_that_inspect_compares(tmp_path: Path) -> None:
    kernel = SOLUTIONS / "1_allreduce_triton.py"
    ran = run_pkb("eval", "1", "--candidate", kernel, "--nproc", "2", "--trials", "2", "--out", tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("CORRECT  1_allreduce  ")
    folder = tmp_path / "1_allreduce" / "1_allreduce_triton"
    assert json.loads((folder / "record.json").read_text())["verdict"] == "CORRECT"
    assert "float32[16, 8]" in run_pkb("inspect", folder / "candidate").stdout
    assert "rank_1" in run_pkb("inspect", folder / "reference", folder / "candidate").stdout


def test_a_wrong_candidate_means_exit_code_1_and_json_stays_json(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def solution(tensor):\n    return tensor.clone()\n")
    ran = run_pkb("eval", "1-2", "--candidate", wrong, "--nproc", "2", "--trials", "1", "--json")
    assert ran.returncode == 1
    records = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(record["problem"], record["verdict"]) for record in records] == [
        ("1_allreduce", "WRONG"),
        ("2_allgather", "WRONG"),
    ]


def test_without_a_verb_there_is_help() -> None:
    ran = run_pkb()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "eval" in ran.stdout
    assert "--install-completion" in ran.stdout


def test_the_version_is_printed() -> None:
    assert run_pkb("--version", PKB_VERSION="9").stdout == f"pkb {pkb.__version__}\n"
    assert "doctor" in run_pkb(PKB_VERSION="9").stdout, "a variable of that name has another meaning elsewhere"


def test_shells_complete_verbs_and_options() -> None:
    assert "_PKB_COMPLETE=complete_bash" in run_pkb("--show-completion", SHELL="/bin/bash").stdout
    ask = {"_PKB_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    assert run_pkb(COMP_WORDS="pkb eval --reuse", **ask).stdout.split() == ["--reuse-baselines"]
    assert run_pkb(COMP_WORDS="pkb insp", **ask | {"COMP_CWORD": "1"}).stdout.split() == ["inspect"]


def test_options_have_environment_twins() -> None:
    ran = run_pkb("eval", "1", *REFERENCE, PKB_EVAL_NPROC="2", PKB_EVAL_TRIALS="1")
    assert "1 trials x 3 calls x 2 ranks" in ran.stdout


def test_dryrun_prints_outputs_and_writes_a_trace(tmp_path: Path) -> None:
    ran = run_pkb("dryrun", "13", *REFERENCE, "--nproc", "2", "--profile", "--out", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "output 0: float32[32, 24]" in ran.stdout
    assert "cpu operators in 3 calls; idle: rank 0 " in ran.stdout
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events if event["name"] == "aten::mm"} == {1, 2}


def test_dryrun_prints_what_ranks_print_and_where_they_fail(tmp_path: Path) -> None:
    kernel = tmp_path / "talks.py"
    kernel.write_text("def solution(tensor):\n    print('rank 0\\nhello')\n    return tensor.nothing\n")
    ran = run_pkb("dryrun", "1", "--candidate", kernel, "--nproc", "1")
    assert ran.returncode == 1
    said = ran.stdout.splitlines()
    assert said[:2] == ["rank 0 printed: rank 0", "rank 0 printed: hello"]
    assert said[2].startswith("CRASH: rank 0 raised AttributeError in the call at line 3 of candidate.py: ")
    assert said[3:] == ["  candidate.py:3 in solution: return tensor.nothing"]


def test_doctor_judges_something() -> None:
    ran = run_pkb("doctor")
    assert ran.returncode == 0
    assert "a judgement: 1_allreduce at 2 ranks: CORRECT" in ran.stdout


def test_the_page_of_problems_is_current() -> None:
    page = ROOT / "docs" / "problems.md"
    assert run_pkb("list", "--markdown").stdout == page.read_text(), "run: pkb list --markdown > docs/problems.md"


def test_people_s_own_problems_are_taken_from_their_folder(tmp_path: Path) -> None:
    shipped = ROOT / "src" / "pkb" / "suites" / "parallel" / "collective_primitive"
    (tmp_path / "7_mine.py").write_text((shipped / "1_allreduce.py").read_text())
    ran = run_pkb("eval", "mine", "--suite", tmp_path, *REFERENCE, "--nproc", "2", "--trials", "1")
    assert "CORRECT  7_mine  reference  " in ran.stdout
    assert run_pkb("list", "--suite", tmp_path / "empty").returncode == 2
