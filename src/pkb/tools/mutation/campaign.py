"""Mutation testing of many problems: findings by setup, declared equivalents, and a file from which to resume."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pkb.base.schema import SchemaError, parse
from pkb.failure import Failure
from pkb.judge.judge import Judge
from pkb.judge.setup.setup import Setup
from pkb.problems.problem import Problem
from pkb.tools.mutation.mutants import Mutant, derive_mutants
from pkb.tools.mutation.runner import MutantOutcome, MutantResult, MutantRunner

REJECTED, ROUNDING, NO_EFFECT, EQUIVALENT, DEGENERATE, SURVIVED = OUTCOMES = (
    *("rejected", "rounding", "no effect", "equivalent", "degenerate", "SURVIVED"),
)
_CODE = Path(__file__).parents[2]
_FOLDERS_THAT_DECIDE = ("judge", "rank", "problems")
"""Folders whose code decides about mutants: after a change in one of them, no finding is taken from a file."""


@dataclass(frozen=True)
class MutantFinding:
    """What became of one mutant in one setup."""

    operator: str
    mutant: str
    """Its key, by which a problem may declare it equivalent."""
    outcome: str
    detail: str

    @property
    def survived(self) -> bool:
        return self.outcome == SURVIVED


@dataclass(frozen=True)
class SetupFindings:
    """What became of all mutants of a problem, in one dtype at one number of ranks."""

    problem: str
    dtype: str
    world: int
    digest: str
    """Of the problem's source, its mutants, and the code that judges them."""
    seconds: float
    findings: list[MutantFinding] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        return sum(finding.outcome == outcome for finding in self.findings)

    def list_survivors(self) -> list[MutantFinding]:
        return [finding for finding in self.findings if finding.survived]


def mutate_setup(
    judge: Judge, setup: Setup, progress: Callable[[int, int], None] = lambda done, total: None
) -> SetupFindings:
    """Judge all mutants of a setup. Raises Failure where the reference itself does not run."""
    start, mutants = time.monotonic(), derive_mutants(setup.problem)
    findings = []
    with MutantRunner(judge, setup) as runner:
        for result in runner.judge_all(mutants):
            findings.append(_conclude(setup, result))
            progress(len(findings), len(mutants))
    seconds = round(time.monotonic() - start, 1)
    digest = compute_digest(setup.problem, mutants)
    return SetupFindings(setup.problem.stem, setup.dtype, setup.world, digest, seconds, findings)


def describe_failure(setup: Setup, failure: Failure) -> SetupFindings:
    """Return the findings of a setup that could not be judged: a reference that does not run rejects nothing."""
    finding = MutantFinding("none", "the reference", SURVIVED, f"{failure.verdict}: {failure.reason}")
    return SetupFindings(setup.problem.stem, setup.dtype, setup.world, "", 0.0, [finding])


def _conclude(setup: Setup, result: MutantResult) -> MutantFinding:
    outcome, detail = _find_outcome(setup, result)
    return MutantFinding(result.mutant.operator.name, result.mutant.key, outcome, detail)


def _find_outcome(setup: Setup, result: MutantResult) -> tuple[str, str]:
    if result.outcome is MutantOutcome.REJECTED:
        return REJECTED, result.detail
    if setup.problem.degenerate:
        return DEGENERATE, setup.problem.degenerate
    if key := find_declared(setup, result.mutant.key):
        return EQUIVALENT, setup.problem.equivalent[key]
    if result.outcome is MutantOutcome.ROUNDING:
        return ROUNDING, result.detail
    if result.outcome is MutantOutcome.SAME_BITS and result.mutant.operator.no_effect_in == setup.dtype:
        return NO_EFFECT, f"inputs in {setup.dtype} need no cast"
    return SURVIVED, result.detail


def find_declared(setup: Setup, key: str) -> str | None:
    """Return the key of EQUIVALENT under which a problem declares a mutant equivalent in this setup, if it does.

    A key may end with the setups that it is true of: ` [2 ranks]`, ` [bfloat16]` or ` [2 ranks, bfloat16]`.
    """
    return next((one for one in list_keys(key, setup.dtype, setup.world) if one in setup.problem.equivalent), None)


def list_keys(key: str, dtype: str, world: int) -> list[str]:
    ranks = f"{world} ranks" if world > 1 else "1 rank"
    return [key, f"{key} [{ranks}]", f"{key} [{dtype}]", f"{key} [{ranks}, {dtype}]"]


def list_stale(problem: Problem, found: Sequence[SetupFindings]) -> list[str]:
    """Return the declared equivalents that excused no mutant in these setups, which must be all that are usual.

    Keys without a colon are faults of the lint without mutants.
    """
    used = {
        key
        for one in found
        for finding in one.findings
        if finding.outcome in (EQUIVALENT, DEGENERATE)
        for key in list_keys(finding.mutant, one.dtype, one.world)
    }
    return [key for key in problem.equivalent if ": " in key and key not in used]


def compute_digest(problem: Problem, mutants: Sequence[Mutant]) -> str:
    """Return what changes with everything that decides about a problem's mutants."""
    shared = sorted(problem.path.parent.parent.glob("_shared/*.py"))
    texts = [
        problem.path.read_text(encoding="utf-8"),
        *(file.read_text(encoding="utf-8") for file in shared),
        *(one.source for one in mutants),
    ]
    digest = hashlib.sha256(_digest_of_code().encode())
    for text in texts:
        digest.update(text.encode())
    return digest.hexdigest()[:16]


def _digest_of_code() -> str:
    files = sorted(file for folder in _FOLDERS_THAT_DECIDE for file in (_CODE / folder).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def read_findings(file: Path) -> dict[tuple[str, str, int], SetupFindings]:
    """Return the findings in a file by problem, dtype and ranks; the last line of an interrupted run may be cut."""
    found: dict[tuple[str, str, int], SetupFindings] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            one = parse(SetupFindings, json.loads(line))
        except (ValueError, SchemaError):
            continue
        found[one.problem, one.dtype, one.world] = one
    return found


def append_findings(file: Path, found: SetupFindings) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(found)) + "\n")


def count_outcomes(found: Sequence[SetupFindings]) -> Iterator[tuple[str, int]]:
    """Yield every outcome that occurred, and how often."""
    counts = Counter(finding.outcome for one in found for finding in one.findings)
    yield from ((outcome, counts[outcome]) for outcome in OUTCOMES if counts[outcome])
