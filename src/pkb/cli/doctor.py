"""`pkb doctor`: what this machine can do, and what to install for more."""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from typing import Any

import typer

from pkb.cli import options as o
from pkb.problems.suite import load_problem
from pkb.settings import ProblemSettings


@dataclass
class Finding:
    what: str
    ok: bool
    detail: str


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(as_json: o.Json = False) -> None:
    """Say what this machine can judge, and what to install for more. Exit code 0 if anything can be judged.

    Example: pkb doctor
    """
    findings = [*_versions(), *_platforms(), *_backends(), _shared_memory(), *_a_judgement()]
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        for finding in findings:
            print(f"{'ok     ' if finding.ok else 'missing'}  {finding.what}: {finding.detail}")
    raise typer.Exit(0 if findings[-1].ok else 1)


def _versions() -> list[Finding]:
    from pkb.provenance import versions

    found = versions()
    return [Finding("versions", True, ", ".join(f"{name} {version}" for name, version in found.items() if version))]


def _platforms() -> list[Finding]:
    from pkb.platforms import platforms

    found = []
    for platform in platforms().values():
        lacking = platform.missing()
        facts = ", ".join(f"{key} {value}" for key, value in platform.describe().items()) if not lacking else ""
        found.append(Finding(f"platform {platform.name}", lacking is None, lacking or facts))
    return found


def _backends() -> list[Finding]:
    from pkb.backends import backends

    checked = [(backend, backend.missing()) for backend in backends().values()]
    return [Finding(f"backend {b.name}", lacking is None, lacking or "can be judged") for b, lacking in checked]


def _shared_memory() -> Finding:
    folder = "/dev/shm"
    if not os.access(folder, os.W_OK):
        return Finding(
            "shared memory", False, f"{folder} is not writable; symmetric buffers go to the temporary folder"
        )
    free = shutil.disk_usage(folder).free
    advice = "" if free > 1 << 30 else "; in a container, start it with a larger --shm-size"
    return Finding("shared memory", free > 1 << 30, f"{free / 2**30:.1f} GiB free in {folder}{advice}")


def _a_judgement() -> list[Finding]:
    """The proof of it all: judge a reference as its own candidate."""
    from pkb.candidate import Candidate
    from pkb.judge.judge import Judge

    problem = load_problem(1)
    with Judge() as judge:
        record = judge.judge(judge.pose(problem, ProblemSettings(nproc=2, trials=1)), Candidate.reference(problem))
    seconds = sum(record.seconds.values())
    said = f"{problem.stem} at 2 ranks: {record.verdict} in {seconds:.1f} s"
    return [_sandbox(record.environment["sandbox"]), Finding("a judgement", record.correct, said)]


def _sandbox(facts: dict[str, Any]) -> Finding:
    from pkb.judge.worlds.sandboxed import advice, closes, described

    if closes(facts):
        return Finding("sandbox", True, described(facts))
    refused = [f"no {level}: {reason}" for level, reason in facts.get("refused", {}).items()]
    return Finding("sandbox", False, "; ".join([described(facts), *refused, advice()]))
