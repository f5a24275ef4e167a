"""What the tables say of runs whose outcome is known."""

import json
import re
from pathlib import Path

from helpers.made import add, timing
from pkb.problems.suite import find_suite
from pkb.report import Report
from pkb.report.cells import Table
from pkb.report.sections.speedups import find_fastest


def tables(*runs: Path) -> dict[str, Table]:
    sections = Report.of(list(runs)).sections
    return {name: section.table for name, section in sections.items() if section.table}


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_the_leaderboard_ranks_by_fast_then_right(tmp_path: Path) -> None:
    for number in range(2):
        add(tmp_path / "right", f"{number + 1}_{('allreduce', 'allgather')[number]}", "1")
    add(tmp_path / "fast", "1_allreduce", "1", timed=timing(2.0))
    add(tmp_path / "fast", "2_allgather", "1", "WRONG")
    board = tables(tmp_path / "right", tmp_path / "fast")["leaderboard"]
    assert [row[0] for row in texts(board)] == ["fast", "right"]
    names = [column.name for column in board.columns]
    assert board.rows[0][names.index("fast_1@1")].value == 0.5
    assert board.rows[0][names.index("pass@1")].value == 0.5
    assert board.rows[1][names.index("pass@1")].value == 1.0
    assert "model" not in names, "it would only repeat the runs' names"


COLLECTIVES = ["1_allreduce", "2_allgather", "3_broadcast", "4_reduce", "5_scatter", "6_gather", "7_reducescatter"]


def make_ranking(folder: Path, **runs: int) -> list[list[str]]:
    """Return run, problems and pass@1 of a leaderboard whose runs have so many problems, the first half right."""
    for run, count in runs.items():
        for number, problem in enumerate(COLLECTIVES[:count]):
            add(folder / run, problem, "1", "CORRECT" if number < (count + 1) // 2 else "WRONG")
    board = tables(*(folder / run for run in runs))["leaderboard"]
    names = [column.name for column in board.columns]
    return [[row[names.index(name)] for name in ("run", "problems", "pass@1")] for row in texts(board)]


def test_a_run_of_one_problem_is_not_ranked_above_others(tmp_path: Path) -> None:
    ranking = make_ranking(tmp_path, one=1, seven=7)
    assert [row[:2] for row in ranking] == [["seven", "7"], ["one", "1 of 7, not ranked"]]
    assert ranking[1][2] == "100 %", "a single problem has no interval"
    note = Report.of([tmp_path / "one", tmp_path / "seven"]).sections["leaderboard"].note
    assert note.startswith("One run is ranked, on its 7 problems; runs that share too few of them are listed below")
    categories = tables(tmp_path / "one", tmp_path / "seven")["categories"]
    assert [column.name for column in categories.columns] == ["category", "one (not ranked)", "seven"]


def test_runs_are_compared_on_the_problems_that_they_share(tmp_path: Path) -> None:
    """Of the first five problems, `seven` has four right, and `five` three."""
    ranking = make_ranking(tmp_path, five=5, seven=7)
    assert [row[:2] for row in ranking] == [["seven", "7"], ["five", "5 of 7"]]
    assert [row[2].split(" (")[0] for row in ranking] == ["80 %", "60 %"]
    note = Report.of([tmp_path / "five", tmp_path / "seven"]).sections["leaderboard"].note
    assert note.startswith("2 runs are compared on the 5 problems that all of them have.")


def test_runs_without_a_common_problem_are_not_ranked_together(tmp_path: Path) -> None:
    add(tmp_path / "a", "1_allreduce", "1")
    add(tmp_path / "a", "2_allgather", "1", "WRONG")
    add(tmp_path / "b", "3_broadcast", "1")
    board = texts(tables(tmp_path / "a", tmp_path / "b")["leaderboard"])
    assert [row[0] for row in board] == ["a", "b"]
    assert "1 of 3, not ranked" in board[1]


def test_no_interval_is_printed_of_few_problems_or_without_width(tmp_path: Path) -> None:
    for problem in COLLECTIVES:
        add(tmp_path / "few" if problem in COLLECTIVES[:4] else tmp_path / "many", problem, "1", "WRONG")
    for problem in COLLECTIVES:
        for run in ("few", "many"):
            for sample, verdict in (("1", "WRONG"), ("2", "CORRECT")):
                if run == "many" or problem in COLLECTIVES[:4]:
                    add(tmp_path / run, problem, sample, verdict, timing(2.0) if verdict == "CORRECT" else None)
    for run in ("few", "many"):
        shown = [cell for table in tables(tmp_path / run).values() for row in texts(table) for cell in row]
        assert not [cell for cell in shown if re.search(r"% \((\d+)-\1\)", cell)]
    few = " ".join(cell for row in texts(tables(tmp_path / "few")["leaderboard"]) for cell in row)
    assert "50 %" in few
    assert "(" not in few
    many = " ".join(cell for row in texts(tables(tmp_path / "many")["leaderboard"]) for cell in row)
    assert re.search(r"50 % \(\d+-\d+\)", many)


def test_cpu_times_are_labelled_wherever_they_are(tmp_path: Path) -> None:
    for run, speed in (("before", 0.004), ("after", 0.003)):
        add(tmp_path / run, "1_allreduce", "1", timed=timing(speed), platform="cpu")
    report = Report.of([tmp_path / "before", tmp_path / "after"])
    report.write(tmp_path, ["md"], find_suite("parallel"))
    lines = (tmp_path / "report.md").read_text().splitlines()
    timed = [line for line in lines if re.search(r"\dx \(", line)]
    assert len(timed) >= 3
    assert all("CPU times" in line for line in timed)
    assert not [line for line in lines if "0.00" in line.replace("0.004", "").replace("0.003", "")]


def test_a_share_over_fewer_problems_says_so(tmp_path: Path) -> None:
    for sample in "123":
        add(tmp_path, "1_allreduce", sample)
    add(tmp_path, "2_allgather", "1", "WRONG")
    assert texts(tables(tmp_path)["leaderboard"])[0][-2:] == ["50 %", "100 % over 1"]


def test_cpu_times_never_enter_the_leaderboard(tmp_path: Path) -> None:
    run = tmp_path / "laptop"
    add(run, "1_allreduce", "1", timed=timing(3.0), platform="cpu")
    found = tables(run)
    names = [column.name for column in found["leaderboard"].columns]
    assert not [name for name in names if name.startswith("fast") or "speed" in name or name == "median"]
    assert "fast_categories" not in found
    assert texts(found["speedups"])[0][-1] == "CPU times"
    assert texts(found["fast_p"])[0][0] == "laptop (CPU times)"
    assert "do not enter the leaderboard" in Report.of([run]).notices[0]


def test_cpu_and_gpu_times_are_never_mixed(tmp_path: Path) -> None:
    run = tmp_path / "both"
    add(run, "1_allreduce", "slow", timed=timing(0.5), platform="gpus")
    add(run, "1_allreduce", "fast", timed=timing(9.0), platform="cpu")
    assert [row.sample for row in find_fastest(Report.of([run]).rows)] == ["slow", "fast"]
    assert [row[0] for row in texts(tables(run)["fast_p"])] == ["both", "both (CPU times)"]


def test_a_comparison_tells_changes_from_noise(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    add(before, "1_allreduce", "1", timed=timing(1.0, seed=1))
    add(after, "1_allreduce", "1", timed=timing(1.5, seed=2))
    add(before, "2_allgather", "1", timed=timing(1.2, seed=3, noise=0.1))
    add(after, "2_allgather", "1", timed=timing(1.2, seed=4, noise=0.1))
    add(before, "3_broadcast", "1", timed=timing(1.0))
    add(after, "3_broadcast", "1", "CRASH")
    add(after, "4_reduce", "1")
    table = tables(before, after)["comparison"]
    assert [row[:2] for row in texts(table)] == [
        ["1_allreduce", "better"],
        ["2_allgather", "noise"],
        ["3_broadcast", "worse"],
        ["4_reduce", "new"],
    ]
    assert abs(float(str(table.rows[0][2].value)) - 1.5) < 0.05
    note = Report.of([before, after]).sections["comparison"].note
    assert "1 better, 1 new, 1 noise, 1 worse" in note
    assert "over 2 problems timed in both runs" in note
    assert table.rows[2][4].row is not None, "the cell leads to the sample"


def test_times_that_differ_in_more_than_the_kernel_are_not_compared(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for problem, platform in (("1_allreduce", "gpus"), ("2_allgather", "shared-gpu"), ("3_broadcast", "cpu")):
        add(before, problem, "1", timed=timing(1.0), platform="cpu" if platform == "cpu" else "gpus")
        add(after, problem, "1", timed=timing(2.0), platform=platform)
    assert [row[1:3] + row[-1:] for row in texts(tables(before, after)["comparison"])] == [
        ["better", "2.00x", ""],
        ["same", "", "platform gpus / shared-gpu"],
        ["same", "", ""],
    ]


def test_a_difference_within_the_margin_is_noise(tmp_path: Path) -> None:
    add(tmp_path / "a", "1_allreduce", "1", timed=timing(1.0, noise=0.0001))
    add(tmp_path / "b", "1_allreduce", "1", timed=timing(1.01, noise=0.0001))
    assert texts(tables(tmp_path / "a", tmp_path / "b")["comparison"])[0][1:3] == ["noise", "1.01x"]


def test_only_two_runs_are_compared(tmp_path: Path) -> None:
    runs = [tmp_path / name for name in "abc"]
    for run in runs:
        add(run, "1_allreduce", "1")
    assert "comparison" in tables(*runs[:2])
    assert "comparison" not in tables(*runs)
    assert "comparison" not in tables(runs[0], runs[0])


def test_failures_are_counted_by_verdict_and_check(tmp_path: Path) -> None:
    for sample, verdict in enumerate(["CORRECT", "WRONG", "WRONG", "HANG", "ENVIRONMENT"]):
        add(tmp_path, "1_allreduce", str(sample), verdict)
    rows = [row[1:] for row in texts(tables(tmp_path)["failures"])]
    assert rows == [
        ["WRONG", "2", "50 %", "values 2"],
        ["HANG", "1", "25 %", ""],
        ["ENVIRONMENT", "1", "", "nursery 1"],
    ]


def test_categories_stand_in_the_problems_order(tmp_path: Path) -> None:
    for run, problems in {"a": ["13_gemm_allreduce"], "b": ["1_allreduce", "13_gemm_allreduce"]}.items():
        for problem in problems:
            add(tmp_path / run, problem, "1")
    table = tables(tmp_path / "a", tmp_path / "b")["categories"]
    assert [row[0] for row in texts(table)] == ["Collective Primitive", "Tensor Parallel", "all"]
    assert [cell.value for cell in table.rows[0][1:]] == [None, 1.0]


def in_turns(run: Path, problem: str, sample: str, *speeds: float | str) -> None:
    """A sample whose turns had these speed-ups or verdicts; its own record is the best one's."""
    for number, speed in enumerate(speeds, start=1):
        turn = run / problem / sample / "turns"
        timed = timing(speed) if isinstance(speed, float) else None
        folder = add(run, problem, sample, "CORRECT" if timed else str(speed), timed)
        (turn / str(number)).mkdir(parents=True)
        (folder / "record.json").rename(turn / str(number) / "record.json")
    times = [speed for speed in speeds if isinstance(speed, float)]
    add(run, problem, sample, "CORRECT" if times else "WRONG", timing(max(times)) if times else None)


def test_fast_p_by_turn_by_hand(tmp_path: Path) -> None:
    """Right: turn 1 is (1/2 + 0) / 2, turn 2 (1 + 0) / 2, turn 3 (1 + 1) / 2. Fast: 0, then 1/2 of one of two, …"""
    run = tmp_path / "refined"
    in_turns(run, "1_allreduce", "a", "WRONG", 0.5, "CRASH")
    in_turns(run, "1_allreduce", "b", 0.8, 2.0)
    in_turns(run, "2_allgather", "a", "HANG", "ENVIRONMENT", 3.0)
    found = tables(run)
    board = found["turns"]
    assert [column.name for column in board.columns] == ["run", "figure", "turn 1", "turn 2", "turn 3"]
    values = {row[1].text: [cell.value for cell in row[2:]] for row in board.rows}
    assert values == {"right": [0.25, 0.5, 1.0], "fast_1": [0.0, 0.25, 0.75]}
    names = [column.name for column in found["leaderboard"].columns]
    assert found["leaderboard"].rows[0][names.index("samples")].value == 3, "a sample counts once"
    report = Report.of([run], p=2.5)
    by_turn = report.sections["turns"].table
    assert by_turn
    assert [cell.value for cell in by_turn.rows[1][2:]] == [0.0, 0.0, 0.5]


def test_samples_in_one_turn_have_no_table_of_turns(tmp_path: Path) -> None:
    add(tmp_path, "1_allreduce", "1")
    assert "turns" not in tables(tmp_path)


def test_turns_are_in_every_file(tmp_path: Path) -> None:
    in_turns(tmp_path / "run", "1_allreduce", "a", "WRONG", 2.0)
    written = Report.of([tmp_path / "run"]).write(
        tmp_path / "out", ["md", "csv", "json", "html"], find_suite("parallel")
    )
    assert [path.name for path in written] == ["report.md", "report.csv", "report.json", "index.html", "turns.csv"]
    lines = (tmp_path / "out" / "turns.csv").read_text().splitlines()
    assert [line.rpartition(",")[2] for line in lines] == ["turn", "1", "2"]
    assert "## fast_p by turn" in (tmp_path / "out" / "report.md").read_text()
    figures = json.loads((tmp_path / "out" / "report.json").read_text())["turns"]
    assert [(one["figure"], [value["value"] for value in one["values"]]) for one in figures] == [
        ("right", [0.0, 1.0]),
        ("fast_1", [0.0, 1.0]),
    ]
    assert "fast_p by turn" in (tmp_path / "out" / "index.html").read_text()
