"""Runs `pkb generate`, `pkb refine`, `pkb agent` and `pkb report` without an account: a provider on loopback answers.

The provider serves shipped kernels, wrong kernels and rubbish according to tables, so the figures of the report are
known beforehand. Needs the packages of `make test`: python examples/without_an_account.py [--problems 1-8] [--out DIR]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.server import KEY, LEARNT, RIGHT, Provider  # noqa: E402
from pkb.problems.suite import select_problems  # noqa: E402
from pkb.runs import find_problem_number  # noqa: E402

SAMPLES = TURNS = 3
PROMPT = ["--backend", "triton", "--precision", "fp32", "--no-hardware", "--size", "tiny", "--examples", "0"]
JUDGED = ["--nproc", "2", "--trials", "1"]
PRICES = ["--price-in", "1.25", "--price-out", "10"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", default="1-8", help="among 1-8")
    parser.add_argument("--out", type=Path, default=None, help="folder for the runs; a new one by default")
    parser.add_argument("--platform", default="auto")
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="pkb-example-"))
    provider = Provider()
    try:
        asked = ["--api-base", provider.url, *PRICES, *PROMPT, *JUDGED, "--platform", options.platform]
        judged = ["--judge", "--samples", str(SAMPLES)]
        run_pkb("generate", options.problems, "--model", "openai/test", "--run", out / "generated", *judged, *asked)
        turns = ["--turns", str(TURNS), "--feedback", "gep"]
        run_pkb("refine", options.problems, "--model", "openai/learner", "--run", out / "refined", *turns, *asked)
        run_pkb("agent", "1", "--model", "openai/worker", "--run", out / "agent", "--max-steps", "5", *asked)
    finally:
        provider.close()
    runs = [out / name for name in ("generated", "refined", "agent")]
    run_pkb("report", *runs, "--out", out / "report")
    print(
        "\nBy hand:",
        *compute_by_hand([find_problem_number(problem.stem) for problem in select_problems(options.problems)]),
        sep="\n  ",
    )
    return 0


def compute_by_hand(problems: list[int]) -> list[str]:
    """Return the figures that follow from the tables of the provider."""
    right = [RIGHT[problem] for problem in problems]
    learnt = [sum(LEARNT[problem] <= turn for problem in problems) for turn in range(1, TURNS + 1)]
    shares = ", ".join(f"turn {turn} {count / len(problems):.0%}" for turn, count in enumerate(learnt, start=1))
    return [
        f"generated: pass@1 = {sum(right) / SAMPLES / len(problems):.0%}, "
        f"pass@3 = {sum(count > 0 for count in right) / len(problems):.0%}",
        f"refined: right by {shares}",
        "agent: pass@1 = 100%",
    ]


def run_pkb(*words: object) -> None:
    print("\n$ pkb", *words, flush=True)
    path = f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-m", "pkb", *map(str, words)], check=True, env=environment)


if __name__ == "__main__":
    sys.exit(main())
