"""Command lines of `pkb generate`, `pkb refine` and `pkb agent` against the tests' provider, and processes of them."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from helpers.processes import start_process
from helpers.server import SOLUTIONS, Provider

STEMS = sorted(path.stem.removesuffix("_triton") for path in SOLUTIONS.glob("[1-8]_*.py"))
DEADLINE_S = 120
JUDGED = ("--platform", "cpu", "--trials", "1")


def make_words(
    provider: Provider, run: Path, behaviour: str, *more: str, verb: str = "generate", problems: str = "1-8"
) -> list[str]:
    """Return what stands after `pkb` on the command line."""
    fixed = ["--model", f"openai/{behaviour}", "--api-base", provider.url, "--run", str(run), "--backend", "triton"]
    prompt = ["--precision", "fp32", "--no-hardware", "--size", "tiny", "--nproc", "2", "--examples", "0"]
    return [verb, problems, *fixed, *prompt, *more]


def start_pkb(words: Sequence[str]) -> "AbstractContextManager[subprocess.Popen[str]]":
    """Start `pkb` in a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return start_process([sys.executable, "-m", "pkb", *words], **pipes)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def list_complete(run: Path) -> list[str]:
    """Return the problems of complete samples."""
    return sorted(file.parents[1].name for file in run.rglob("sample.json"))


def count_requests(provider: Provider) -> list[int]:
    """Return how often each prompt was sent, in ascending order."""
    return sorted(Counter(request.prompt for request in provider.requests).values())
