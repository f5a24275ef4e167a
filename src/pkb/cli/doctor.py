"""`pkb doctor`: find out what this machine can judge, and what to install for more."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from pkb.cli import _options as o

if TYPE_CHECKING:
    from pkb.tools.diagnosis import Diagnosis


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(as_json: o.Json = False) -> None:
    """Print what this machine can judge, and what to install for more. Exit code 0 if a judgement works.

    Example: pkb doctor
    """
    from pkb.tools.diagnosis import diagnose_shared_memory

    found = [_list_versions(), *_check_platforms(), *_check_backends(), diagnose_shared_memory(), *_try_judgement()]
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=1))
    else:
        for one in found:
            print(f"{'ok     ' if one.ok else 'missing'}  {one.what}: {one.detail}")
    raise typer.Exit(0 if found[-1].ok else 1)


def _list_versions() -> "Diagnosis":
    from pkb.provenance import find_versions
    from pkb.tools.diagnosis import Diagnosis

    found = find_versions()
    return Diagnosis("versions", True, ", ".join(f"{name} {version}" for name, version in found.items() if version))


def _check_platforms() -> "list[Diagnosis]":
    from pkb.platforms import load_platforms
    from pkb.tools.diagnosis import Diagnosis

    found = []
    for platform in load_platforms().values():
        lacking = platform.find_missing()
        facts = ", ".join(f"{key} {value}" for key, value in platform.describe().items()) if not lacking else ""
        found.append(Diagnosis(f"platform {platform.name}", lacking is None, lacking or facts))
    return found


def _check_backends() -> "list[Diagnosis]":
    from pkb.backends import load_backends
    from pkb.tools.diagnosis import Diagnosis

    checked = [(backend, backend.find_missing()) for backend in load_backends().values()]
    return [Diagnosis(f"backend {b.name}", lacking is None, lacking or "can be judged") for b, lacking in checked]


def _try_judgement() -> "list[Diagnosis]":
    """Judge a reference as its own candidate; return what its sandbox closed, and the outcome."""
    from pkb.candidate import Candidate
    from pkb.judge.judge import Judge
    from pkb.problems.suite import load_problem
    from pkb.settings import ProblemSettings
    from pkb.tools.diagnosis import Diagnosis, diagnose_sandbox

    problem = load_problem(1)
    with Judge() as judge:
        record = judge.judge(judge.pose(problem, ProblemSettings(nproc=2, trials=1)), Candidate.reference(problem))
    seconds = sum(record.seconds.values())
    said = f"{problem.stem} at 2 ranks: {record.verdict} in {seconds:.1f} s"
    return [*diagnose_sandbox(record.environment.sandbox), Diagnosis("a judgement", record.correct, said)]
