"""`pkb doctor`: find out what this machine can judge, and what to install for more."""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import typer

from pkb.cli import _options as o

if TYPE_CHECKING:
    from pkb.record import SandboxFacts


_WEAK = ("open", "visible", "empty at the start")
"""What the facts of a sandbox say of something that is neither closed nor limited."""


@dataclass
class Diagnosis:
    """Whether one thing that judgements need is there."""

    what: str
    ok: bool
    detail: str


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(as_json: o.Json = False) -> None:
    """Print what this machine can judge, and what to install for more. Exit code 0 if a judgement works.

    Example: pkb doctor
    """
    found = [_list_versions(), *_check_platforms(), *_check_backends(), _check_shared_memory(), *_try_judgement()]
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=1))
    else:
        for one in found:
            print(f"{'ok     ' if one.ok else 'missing'}  {one.what}: {one.detail}")
    raise typer.Exit(0 if found[-1].ok else 1)


def _list_versions() -> Diagnosis:
    from pkb.provenance import find_versions

    found = find_versions()
    return Diagnosis("versions", True, ", ".join(f"{name} {version}" for name, version in found.items() if version))


def _check_platforms() -> list[Diagnosis]:
    from pkb.platforms import load_platforms

    found = []
    for platform in load_platforms().values():
        lacking = platform.find_missing()
        facts = ", ".join(f"{key} {value}" for key, value in platform.describe().items()) if not lacking else ""
        found.append(Diagnosis(f"platform {platform.name}", lacking is None, lacking or facts))
    return found


def _check_backends() -> list[Diagnosis]:
    from pkb.backends import load_backends

    checked = [(backend, backend.find_missing()) for backend in load_backends().values()]
    return [Diagnosis(f"backend {b.name}", lacking is None, lacking or "can be judged") for b, lacking in checked]


def _check_shared_memory() -> Diagnosis:
    folder = "/dev/shm"
    if not os.access(folder, os.W_OK):
        return Diagnosis(
            "shared memory", False, f"{folder} is not writable; symmetric buffers go to the temporary folder"
        )
    free = shutil.disk_usage(folder).free
    advice = "" if free > 1 << 30 else "; in a container, start it with a larger --shm-size"
    return Diagnosis("shared memory", free > 1 << 30, f"{free / 2**30:.1f} GiB free in {folder}{advice}")


def _try_judgement() -> list[Diagnosis]:
    """Judge a reference as its own candidate; return what its sandbox closed, and the outcome."""
    from pkb.candidate import Candidate
    from pkb.judge.judge import Judge
    from pkb.problems.suite import load_problem
    from pkb.settings import ProblemSettings

    problem = load_problem(1)
    with Judge() as judge:
        record = judge.judge(judge.pose(problem, ProblemSettings(nproc=2, trials=1)), Candidate.reference(problem))
    seconds = sum(record.seconds.values())
    said = f"{problem.stem} at 2 ranks: {record.verdict} in {seconds:.1f} s"
    return [*_check_sandbox(record.environment.sandbox), Diagnosis("a judgement", record.correct, said)]


def _check_sandbox(facts: "SandboxFacts") -> list[Diagnosis]:
    """Return the sandbox's level, then for each thing that it may close or limit what held and by which means."""
    from pkb.judge.worlds.sandboxed import PLACES, advise, is_closed

    refused = [f"no {level}: {reason}" for level, reason in facts.refused.items()]
    advice = [] if is_closed(facts) else [*refused, advise()]
    level = Diagnosis("sandbox", is_closed(facts), "; ".join([facts.level, *advice]))
    held = {place: getattr(facts, place) or "open" for place in PLACES}
    if facts.most_processes:
        held["processes"] += f", at most {facts.most_processes}"
    rows = [Diagnosis(f"sandbox, {place.replace('_', ' ')}", text not in _WEAK, text) for place, text in held.items()]
    return [level, *rows]
