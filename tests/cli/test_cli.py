"""The verbs as a user runs them, in the process of the tests."""

import json
import re
from pathlib import Path

import pytest
import torch
from rich.console import Console

import pkb
from helpers.commands import check_mistake, run_pkb
from pkb.cli import _terminal
from pkb.protocol.compile_modes import parse_baselines, parse_modes
from pkb.settings import ProblemSettings

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
    # Two variants are right: one, and the one whose sums are rounded after every rank.
    total = f"In all: 2 passed, {found['rejected']} rejected"
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
        (["eval", "1", *REFERENCE, "--out", __file__], f"cannot write to {__file__}: File exists; choose another"),
        (["eval", "1", *REFERENCE, "--out", "/proc/runs"], "cannot write to /proc/runs: "),
        (["dryrun", "1", *REFERENCE, "--profile", "--out", "/proc/runs"], "cannot write to /proc/runs: "),
        (["baseline", "1", "--size", "tiny", "--store", "/proc/runs"], "cannot write to /proc/runs: "),
        (["eval", "1", *REFERENCE, "--backend", "cude"], "--backend has no effect with --candidate reference"),
        (["eval", "1", *REFERENCE, "--resume"], "--resume has no effect without --out"),
        (["eval", "1", *REFERENCE, "--store", "x"], "--store has no effect without --reuse-baselines"),
        (["eval", "1", *REFERENCE, "--size", "tiny", "--m", "4", "--n", "4"], "--size has no effect with --m and --n"),
        (["eval", "1", *REFERENCE, "--baselines", "eager"], "eager is the reference itself"),
        (["eval", "1", "--candidate", __file__, "--backend", "cude"], "unknown backend 'cude'"),
        (["eval", "1", "--solutions-dir", "/nowhere", "--backend", "triton"], "there is no folder /nowhere"),
        (["dryrun", "1", *REFERENCE, "--out", "x"], "--out has no effect without --profile"),
        (["baseline", "1", "--list"], "the argument PROBLEMS has no effect with --list"),
        (["inspect", str(SOLUTIONS), "--dtype", "bf16"], "--dtype has no effect on saved outputs"),
        (["list", "--markdown", "--json"], "--json has no effect with --markdown"),
        (["lint", "1", "--markdown", "--verbose"], "--verbose has no effect with --markdown"),
        (["redteam", "--no-kernels", "--kernels", "x"], "--kernels has no effect with --no-kernels"),
        (["check", "--rules", "x.py"], "has no effect with --rules"),
        (["check", "x.py", "--markdown"], "--markdown has no effect without --rules"),
        (
            ["generate", "1", "--model", "a/b", "--run", "x", "--rigor", "paper"],
            "--rigor has no effect without --judge",
        ),
        (["show", "999"], "there are 1 to 87"),
        (["show", "L1/999", "--suite", "kernelbench"], "there are L1/1 to L1/100"),
        (["show", "conv_standard_2D_square_input", "--suite", "kernelbench"], "did you mean conv_standard_2D__square"),
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


def test_problems_without_a_candidate_are_counted(tmp_path: Path) -> None:
    (tmp_path / "2_allgather_triton.py").write_text((SOLUTIONS / "2_allgather_triton.py").read_text())
    ran = run_pkb("eval", "1-3", "--solutions-dir", tmp_path, "--backend", "triton", "--nproc", "2", "--trials", "1")
    assert ran.returncode == 1, "not every problem that was named has a correct candidate"
    assert ran.stdout.startswith("CORRECT  2_allgather  ")
    assert "1 of 1 correct" in ran.stdout
    assert ran.stderr == f"2 of 3 problems have no candidate in {tmp_path}: 1_allreduce, 3_broadcast\n"


def test_others_names_of_dtypes_and_baselines_are_understood() -> None:
    shown = [run_pkb("show", "13", "--dtype", name).stdout for name in ("bfloat16", "bf16", "torch.bfloat16")]
    assert shown[0] == shown[1] == shown[2]
    prompts = [run_pkb("prompt", "1", "--precision", name).stdout for name in ("bf16", "bfloat16")]
    assert prompts[0] == prompts[1]
    assert ProblemSettings(dtype="fp16").dtype == "float16"
    assert parse_baselines("default,compile-cudagraphs, compile") == ["compile-default", "compile-cudagraphs"]
    assert parse_modes("compile-default,eager") == ["compile-default", "eager"]


def test_a_suite_with_levels_is_listed_by_what_commands_take() -> None:
    rows = json.loads(run_pkb("list", "--suite", "kernelbench", "--category", "level2", "--json").stdout)
    assert rows[0]["key"] == "L2/1"
    assert "L2/100  " in run_pkb("list", "--suite", "kernelbench", "--category", "level2").stdout


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_gets_the_whole_list(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(_terminal, "make_console", lambda: Console(width=width))
    lines = run_pkb("list", "--category", "Tensor Parallel").stdout.splitlines()[:-1]
    assert max(map(len, lines)) <= width
    assert "13  gemm_allreduce" in lines
    (title,) = [row["title"] for row in json.loads(run_pkb("list", "--json").stdout) if row["id"] == 13]
    assert "".join(title.split()) in "".join("".join(lines).split())


def test_inspect_prints_tensors_in_lists() -> None:
    lines = run_pkb("inspect", "21", "--nproc", "1").stdout.splitlines()
    assert lines[1].startswith("  grad_tensors[0]: float32[16, 24] [")
    assert len(lines) < 10


def test_inspect_compares_by_the_judge_s_tolerance(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    near = "import torch.distributed as dist\ndef solution(A_local, B_local):\n    C = A_local @ B_local\n"
    kernel.write_text(f"{near}    dist.all_reduce(C)\n    return C.nextafter(C + 1)\n")
    ran = run_pkb("eval", "13", "--candidate", kernel, "--nproc", "2", "--trials", "1", "--out", tmp_path)
    assert ran.returncode == 0, ran.stdout
    reference, candidate = (tmp_path / "13_gemm_allreduce" / "kernel" / side for side in ("reference", "candidate"))
    ran = run_pkb("inspect", reference, candidate)
    assert ran.returncode == 0, ran.stdout
    assert "within the judge's tolerance (relative error" in ran.stdout
    assert "not the same bit for bit" in ran.stdout
    got, expected = re.findall(r"farthest: (\S+) against (\S+) at", ran.stdout)[0]
    assert got != expected
    same = run_pkb("inspect", candidate, candidate)
    assert (same.returncode, same.stdout.count("the same, bit for bit")) == (0, 6)
    saved = torch.load(candidate / "rank_0.pt", weights_only=True)
    saved["outputs"]["call_0"][0][0, 0] += 1
    torch.save(saved, candidate / "rank_0.pt")
    wrong = run_pkb("inspect", reference, candidate)
    assert (wrong.returncode, wrong.stdout.count("DIFFERS by more than the judge's tolerance")) == (1, 1)


def test_resume_says_what_was_kept(tmp_path: Path) -> None:
    words = ["eval", "1", *REFERENCE, "--nproc", "1", "--trials", "1", "--out", tmp_path, "--resume"]
    assert "kept from" not in run_pkb(*words).stdout
    assert re.match(r"CORRECT  1_allreduce  reference  kept from 20\d\d-\d\d-\d\d \d\d:\d\d\n", run_pkb(*words).stdout)


def test_baseline_says_what_it_is_about_to_time(tmp_path: Path) -> None:
    words = ["baseline", "1", "--nproc", "1", "--size", "tiny", "--modes", "eager", "--rigor", "quick"]
    ran = run_pkb(*words, "--store", tmp_path, "--platform", "cpu")
    first, warning, status = ran.stderr.splitlines()
    assert first == "timing 1 references at size tiny on cpu, each eager"
    assert "CPU times" in warning
    assert status == "1 of 1: 1_allreduce"


def test_an_empty_candidate_says_that_there_is_no_code(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("\n")
    ran = run_pkb("eval", "1", "--candidate", tmp_path / "empty.py")
    assert ran.stdout.startswith("BUILD_FAILED  1_allreduce  empty  ")
    assert "its answer held no code" in ran.stdout


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (
            ("return (case.randn(case.m, case.n),)", "return case.randn(case.m, case.n)"),
            "inputs returned Tensor, not a tuple",
        ),
        (("def inputs", "def outputs"), "defines no function or class inputs"),
    ],
)
def test_mistakes_in_a_problem_of_one_s_own_are_named(tmp_path: Path, spoil: tuple[str, str], says: str) -> None:
    text = (ROOT / "src" / "pkb" / "suites" / "parallel" / "collective_primitive" / "1_allreduce.py").read_text()
    assert spoil[0] in text
    (tmp_path / "7_mine.py").write_text(text.replace(*spoil))
    ran = run_pkb("eval", "7", "--suite", tmp_path, *REFERENCE, "--nproc", "1", "--trials", "1")
    assert says in ran.stdout + ran.stderr


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
