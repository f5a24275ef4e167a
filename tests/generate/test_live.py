"""What a person sees on a terminal while a run is under way."""

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

from helpers.generating import DEADLINE_S, make_words, wait_until
from helpers.processes import start_process
from helpers.running import TRITON
from helpers.server import Provider
from pkb.cli._pipeline_progress import PipelineStatus
from pkb.engine import Phase
from pkb.generate.budget import Budget
from pkb.generate.experiment import SamplingMethod, plan
from pkb.generate.model import ModelSettings
from pkb.problems.suite import select_problems


class Terminal:
    """All that was written to it."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.text = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                self.text += os.read(self.master, 4096).decode(errors="replace")
        except OSError:
            # The other end is closed.
            return


def test_a_terminal_shows_counts_cost_and_what_is_left(provider: Provider, tmp_path: Path) -> None:
    terminal = Terminal()
    words = make_words(provider, tmp_path, "slow", "--price-in", "10", "--price-out", "10", problems="1-2")
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    pipes = {"stdout": terminal.slave, "stderr": subprocess.PIPE}
    with start_process([sys.executable, "-m", "pkb", *words], **pipes, env=environment) as process:
        os.close(terminal.slave)
        wait_until(lambda: "2 asking; 0 of 2 answers; 0 of 2 right; $ 0.00; estimating the time left" in terminal.text)
        provider.allow(1)
        wait_until(lambda: "1 asking, 1 done; 1 of 2 answers; 0 of 2 right; $ 0.01; about 0:" in terminal.text)
        provider.allow(1)
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, errors
    wait_until(lambda: terminal.text.count(" tokens ") == 2)


def test_progress_counts_stages_and_right_ones(tmp_path: Path) -> None:
    experiments = plan(select_problems("1-3"), TRITON, ModelSettings("openai/any"), 1, tmp_path, SamplingMethod(2, "g"))
    status = PipelineStatus(experiments, Budget(tmp_path), judged=True)
    first, second, third = experiments
    status.set_stage(first, "asking")
    status.set_stage(second, Phase.BUILDING)
    counts = "1 waiting, 1 asking, 1 building; 0 of 6 answers; 0 of 3 right; $ 0.00"
    assert status.describe() == f"{counts}; estimating the time left"
    status.count_answer()
    status.count_record(first, correct=True)
    status.count_record(first, correct=True)
    for one in (first, second, third):
        status.set_stage(one, "done")
    assert status.describe().startswith("3 done; 2 of 6 answers; 1 of 3 right; $ 0.00; about 0:")
