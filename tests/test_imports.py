"""Readers of records start fast: they never import torch."""

import subprocess
import sys

import pytest

READERS = ("pkb.runs", "pkb.record", "pkb.provenance", "pkb.analyse", "pkb.analyse.speed_of_light", "pkb.report")


@pytest.mark.parametrize("module", READERS)
def test_readers_of_records_do_not_import_torch(module: str) -> None:
    script = f"import sys, {module}; sys.exit(int('torch' in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], timeout=120).returncode == 0


def test_a_report_is_written_without_torch(tmp_path_factory: pytest.TempPathFactory) -> None:
    from helpers.made import make_run

    run = make_run(tmp_path_factory.mktemp("runs") / "mine", ["1_allreduce"])
    script = (
        "import sys; from pathlib import Path; "
        "from pkb.problems.suite import find_suite; from pkb.report import Report; "
        "Report.of([Path(sys.argv[1])]).write(Path(sys.argv[2]), ['md', 'json', 'html'], find_suite('parallel')); "
        "sys.exit(int('torch' in sys.modules))"
    )
    command = [sys.executable, "-c", script, str(run), str(run / "report")]
    assert subprocess.run(command, timeout=120).returncode == 0
