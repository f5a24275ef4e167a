"""Mutants of references: every operator makes them, the judge rejects them, and what survives is found."""

import json
from pathlib import Path

import pytest

from helpers.commands import run_pkb
from pkb.judge.judge import Judge
from pkb.problems.problem import Problem
from pkb.problems.suite import Suite, load_problem
from pkb.settings import ProblemSettings
from pkb.tools.mutation.campaign import (
    EQUIVALENT,
    OUTCOMES,
    REJECTED,
    ROUNDING,
    SURVIVED,
    SetupFindings,
    append_findings,
    compute_digest,
    list_stale,
    mutate_setup,
    read_findings,
)
from pkb.tools.mutation.change import Operator
from pkb.tools.mutation.mutants import Mutant, derive_from_source, derive_mutants
from pkb.tools.mutation.operators import list_operators
from pkb.tools.mutation.runner import MutantOutcome, MutantRunner

SAMPLES = {
    "arguments": ("def solution(x, causal: bool = True):\n    return x", "causal = False"),
    "bounds": ("def solution(x, n):\n    return x[:n]", "return x[:n + 1]"),
    "branches": ("def solution(x):\n    dist.all_reduce(x)\n    return x", "    pass"),
    "casts": ("def solution(x):\n    return x.float().sum()", "return x.sum()"),
    "comparisons": ("def solution(x, y):\n    return x < y", "return x <= y"),
    "constants": ("def solution(x):\n    return f(x, eps=1e-06)", "return f(x, eps=0.0)"),
    "dims": ("def solution(x):\n    return x.softmax(dim=1)", "return x.softmax(dim=0)"),
    "groups": ("def solution(x, group):\n    dist.all_reduce(x, group=group)", "dist.all_reduce(x)"),
    "guards": ("def solution(x):\n    return x.clamp(min=0).sum()", "return x.sum()"),
    "layouts": ("def solution(x, y):\n    return x.T @ y", "return x @ y"),
    "orders": (
        "def solution(x):\n    if a:\n        x = f(x)\n    x = g(x)",
        "    x = g(x)\n    if a:\n        x = f(x)",
    ),
    "ranks": ("def solution(x):\n    return x[dist.get_rank()]", "return x[dist.get_rank() - 1]"),
    "reductions": ("def solution(x):\n    return x.sum(dim=0)", "return x.mean(dim=0)"),
    "terms": ("def solution(x, y):\n    return x - y", "return y - x"),
    "versions": ("def solution(x):\n    x = f(x)\n    return g(x)", "    return g(x_before)"),
}
"""By operator: a source, and what one of its mutants contains."""

KEPT = {
    ("arguments", 18): "solution: variance_epsilon = 1.0",
    ("bounds", 18): "/ (wide.shape[0] * dist.get_world_size())",
    ("branches", 18): "solution: dist.all_reduce(squares) -> pass",
    ("casts", 18): "-> return local_weight * normed",
    ("constants", 18): "-> squares = wide.pow(3).sum(dim=-1, keepdim=True)",
    ("dims", 18): "-> squares = wide.pow(2).sum(dim=-2, keepdim=True)",
    ("ranks", 18): "/ (wide.shape[-1] * (dist.get_world_size() + 1))",
    ("reductions", 18): "-> squares = wide.pow(2).mean(dim=-1, keepdim=True)",
    ("terms", 18): "-> variance = squares / wide.shape[-1]",
    ("groups", 48): "swiglu_summed: dist.all_reduce(y, group=tp_group) -> dist.all_reduce(y)",
    ("comparisons", 82): "logits.masked_fill(logits <= smallest, float('-inf'))",
    ("guards", 82): "-> logits = logits",
    ("layouts", 82): "-> received.view(dist.get_world_size(group), -1, logits.shape[1])",
    ("orders", 82): "dim=1, largest=False).values[:, -1:]",
    ("versions", 82): "return logits with logits as before if top_p",
}
"""By operator and problem: the key of a mutant, or its end or beginning, that the judge must reject."""
HANDMADE = '''"""A sum over ranks of the inputs below 2, times a scale; with a mask."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(x, mask):
    total = torch.where(mask, x.clamp(max=2.0), x) * 3.0
    dist.all_reduce(total)
    return total


PROBLEM = Problem(category="Own", source="the tests", sizes={"tiny": Size(6, 4)})
EQUIVALENT = {}


def inputs(case):
    x = case.randn(case.m, case.n, scale=SCALE)
    return x, x > 0


def cost(case):
    return Cost(flops=1, hbm=1, link=link.all_reduce(case.m * case.n * case.itemsize, case.world))
'''
_BEFORE, _AFTER = "torch.where(mask, x.clamp(max=2.0), x)", "torch.where(mask, x, x)"
CLAMP = f"solution: total = {_BEFORE} * 3.0 -> total = {_AFTER} * 3.0"


@pytest.mark.parametrize("operator", list_operators(), ids=lambda operator: operator.name)
def test_every_operator_makes_its_changes(operator: Operator) -> None:
    source, wanted = SAMPLES[operator.name]
    made = derive_from_source(source, operators=(operator,))
    assert any(wanted in mutant.source for mutant in made), [mutant.source for mutant in made]
    assert len({mutant.key for mutant in made}) == len(made)


def test_what_no_call_reaches_is_left_alone() -> None:
    source = '''"""Text 1."""
def solution(x: list[1], n: int = 3) -> 4:
    """Return 5."""
    assert n > 6
    if n > 7:
        raise ValueError(8)
    if dist.get_world_size() == 1:
        return x + 9
    return x
'''
    assert {mutant.operator.name for mutant in derive_from_source(source)} == {"arguments"}


def test_changes_that_compile_to_the_same_code_are_one_mutant() -> None:
    made = derive_from_source("def solution(x):\n    return x * -1 + 0 * 1")
    assert len({mutant.source for mutant in made}) == len(made)
    assert "def solution(x):\n    return x * -1 + 0" not in {mutant.source for mutant in made if "* 1" in mutant.key}


def test_every_operator_keeps_a_mutant() -> None:
    assert {name for name, _ in KEPT} == {operator.name for operator in list_operators()} == SAMPLES.keys()


def test_the_page_has_every_operator_and_outcome() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mutation.md").read_text()
    assert [name for name in SAMPLES if f"| `{name}` |" not in page] == []
    assert [outcome for outcome in OUTCOMES if f"| {outcome} |" not in page] == []


@pytest.mark.parametrize(("number", "ranks"), [(18, 2), (48, 4), (82, 2)])
def test_the_judge_rejects_a_mutant_of_every_operator(judge: Judge, number: int, ranks: int) -> None:
    problem = load_problem(number)
    wanted = [(operator, key) for (operator, of), key in KEPT.items() if of == number]
    mutants = [_find_mutant(problem, operator, key) for operator, key in wanted]
    with MutantRunner(judge, judge.pose(problem, ProblemSettings(nproc=ranks, dtype="bfloat16"))) as runner:
        results = list(runner.judge_all(mutants))
    assert [result.mutant for result in results] == mutants
    assert [result for result in results if result.outcome is not MutantOutcome.REJECTED] == []


def _find_mutant(problem: Problem, operator: str, key: str) -> Mutant:
    fits = [one for one in derive_mutants(problem) if one.operator.name == operator and key in one.key]
    return min(fits, key=lambda one: len(one.key))


def load_handmade(folder: Path, scale: str, equivalent: str = "{}") -> Problem:
    text = HANDMADE.replace("SCALE", scale).replace("EQUIVALENT = {}", f"EQUIVALENT = {equivalent}")
    folder.mkdir(exist_ok=True)
    (folder / "1_handmade.py").write_text(text)
    return Suite(folder).load(1)


def mutate(judge: Judge, problem: Problem) -> SetupFindings:
    return mutate_setup(judge, judge.pose(problem, ProblemSettings(nproc=2, trials=2)))


def test_weak_inputs_are_found_and_stronger_ones_or_a_declaration_settle_them(judge: Judge, tmp_path: Path) -> None:
    weak = load_handmade(tmp_path / "weak", scale="0.1")
    assert CLAMP in {finding.mutant for finding in mutate(judge, weak).list_survivors()}

    strong = mutate(judge, load_handmade(tmp_path / "strong", scale="3.0"))
    assert {finding.outcome for finding in strong.findings if finding.mutant == CLAMP} == {REJECTED}

    reasons = repr({f"{CLAMP} [2 ranks, float32]": "no input is above 2", f"{CLAMP} [4 ranks]": "", "f: gone": ""})
    declared = load_handmade(tmp_path / "declared", scale="0.1", equivalent=reasons)
    found = mutate(judge, declared)
    assert [one.detail for one in found.findings if one.outcome == EQUIVALENT] == ["no input is above 2"]
    assert list_stale(declared, [found]) == [f"{CLAMP} [4 ranks]", "f: gone"]


def test_a_sum_in_another_order_differs_by_rounding_only(judge: Judge) -> None:
    problem = load_problem(18)
    backwards = "wide.flip(-1).pow(2).cumsum(-1)[..., -1:].sum("
    source = problem.make_candidate_source().replace("wide.pow(2).sum(", backwards)
    assert backwards in source
    with MutantRunner(judge, judge.pose(problem, ProblemSettings(nproc=2, trials=1))) as runner:
        (result,) = runner.judge_all([_make_mutant(source)])
    assert result.outcome in (ROUNDING, MutantOutcome.SAME_BITS)


def test_mutants_that_break_the_world_cost_only_themselves(judge: Judge) -> None:
    problem = load_problem(1)
    same = _wrap(problem, "")
    waits = _wrap(problem, "if dist.get_rank(): dist.recv(tensor.clone())")
    unread = _wrap(problem, "dist.isend(tensor, 1 - dist.get_rank()); raise ValueError")
    exits = _wrap(problem, "__import__('os')._exit(3)")
    with MutantRunner(judge, judge.pose(problem, ProblemSettings(nproc=2, trials=1))) as runner:
        results = list(runner.judge_all([_make_mutant(text) for text in (same, waits, same, unread, exits, same)]))
    kinds = [result.detail.split(":")[0] for result in results]
    right = "the reference's bits in all trials"
    assert kinds == [right, "HANG", right, "CRASH", "CRASH", right]


def _wrap(problem: Problem, first: str) -> str:
    """Return a candidate's file whose solution does something before it returns what is right."""
    body = f"    import torch.distributed as dist\n    {first or 'pass'}\n    return right(tensor)\n"
    return f"{problem.make_candidate_source()}\n\nright = solution\n\n\ndef solution(tensor):\n{body}"


def _make_mutant(source: str) -> Mutant:
    return Mutant(list_operators()[0], "by hand", source)


def test_findings_are_resumed_unless_what_decides_has_changed(tmp_path: Path) -> None:
    file, problem = tmp_path / "found.jsonl", load_handmade(tmp_path / "suite", scale="0.1")
    digest = compute_digest(problem, derive_mutants(problem))
    found = SetupFindings(problem.stem, "float32", 2, digest, 1.0)
    append_findings(file, found)
    file.write_text(file.read_text() + json.dumps({"problem": "cut"})[:-5])
    assert read_findings(file) == {(problem.stem, "float32", 2): found}
    assert digest != compute_digest(load_handmade(tmp_path / "other", scale="0.2"), derive_mutants(problem))


def test_the_command_lists_survivors_and_resumes(tmp_path: Path) -> None:
    load_handmade(tmp_path / "weak", scale="0.1")
    words = ["lint", "1", "--suite", tmp_path / "weak", "--mutate", "--nproc", 2, "--dtype", "float32", "--trials", 1]
    words += ["--out", tmp_path / "found.jsonl", "--platform", "cpu"]
    first = run_pkb(*words)
    assert first.returncode == 1
    assert CLAMP in first.stdout
    assert SURVIVED in first.stdout
    again = run_pkb(*words)
    assert again.stdout == first.stdout
    assert len((tmp_path / "found.jsonl").read_text().splitlines()) == 1


def test_a_reference_that_does_not_run_rejects_nothing(tmp_path: Path) -> None:
    load_handmade(tmp_path / "broken", scale="0.1")
    file = tmp_path / "broken" / "1_handmade.py"
    file.write_text(file.read_text().replace("    total = ", "    total = unknown + "))
    ran = run_pkb("lint", "1", "--suite", file.parent, "--mutate", "--nproc", 2, "--trials", 1, "--platform", "cpu")
    assert ran.returncode == 1
    assert "rejected" not in ran.stdout
    assert "NameError" in ran.stdout
