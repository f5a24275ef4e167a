"""The page: one HTML file with its style, its script and its data inside; it asks the network for nothing."""

import base64
import contextlib
import hashlib
import json
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkb.analyse import Row, compute_fast_p_curve, list_timed_rows
from pkb.errors import UsageError
from pkb.problems.suite import read_problem
from pkb.report.cells import Cell, Table
from pkb.report.sample_detail import finite, part
from pkb.report.tables import Line, by_run, lines

if TYPE_CHECKING:
    from pkb.problems.suite import Suite
    from pkb.report import Report

MOST_PARTS = 5000
"""Samples whose sources and evidence the page holds: some 10 kB each."""
_FOLDER = Path(__file__).parent / "static"
_SCRIPTS = ("dom.js", "charts.js", "tables.js", "sample.js", "page.js")
_COLUMNS = [field.name for field in fields(Row) if field.name != "folder"]
_POINTS = 81


def html(report: "Report", suite: "Suite") -> str:
    """The page of a report; references are shown as `suite` has them."""
    references = _references(report.rows, suite)
    pieces = [_data_block(f"reference-{at}", text) for at, text in enumerate(references.values())]
    pieces += [_data_block(f"part-{at}", detail) for at, row in _chosen(report) if (detail := part(row))]
    style = (_FOLDER / "page.css").read_text()
    script = "'use strict';\n{\n" + "\n".join((_FOLDER / name).read_text() for name in _SCRIPTS) + "}\n"
    filling = {
        "@POLICY@": f"default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src {_hash(script)}; style-src {_hash(style)}",
        "@STYLE@": style,
        "@DATA@": _embedded(_document(report, list(references))),
        "@PARTS@": "\n".join(pieces),
        "@SCRIPT@": script,
    }
    return "".join(filling.get(piece, piece) for piece in _pieces((_FOLDER / "page.html").read_text(), list(filling)))


def _chosen(report: "Report") -> list[tuple[int, Row]]:
    """The samples that the page tells all of, with their places: those that its tables lead to, then the others."""
    named = {id(cell.row) for table in report.tables for row in table.rows for cell in row}
    return sorted(enumerate(report.rows), key=lambda item: id(item[1]) not in named)[:MOST_PARTS]


def _pieces(template: str, marks: list[str]) -> list[str]:
    """The template cut at its marks, so that nothing filled in is ever searched for marks itself."""
    pieces = [template]
    for mark in marks:
        before, _, after = pieces.pop().partition(mark)
        pieces += [before, mark, after]
    return pieces


def _document(report: "Report", references: list[str]) -> dict[str, Any]:
    index = {id(row): at for at, row in enumerate(report.rows)}
    return {
        "subtitle": report.subtitle,
        "made": report.made,
        "notices": report.notices,
        "runs": [{"name": run} for run in by_run(report.rows)],
        "tables": {table.key: _table(table, index) for table in report.tables},
        "curve": _curve(report.rows),
        "verdicts": [{"run": run, "counts": _verdicts(found)} for run, found in by_run(report.rows).items()],
        "references": {problem: at for at, problem in enumerate(references)},
        "parts": MOST_PARTS,
        "columns": _COLUMNS,
        "rows": [[_known(getattr(row, name)) for name in _COLUMNS] for row in report.rows],
    }


def _table(table: Table, index: dict[int, int]) -> dict[str, Any]:
    def cell(one: Cell) -> list[Any]:
        return [one.text, one.value, None if one.row is None else index[id(one.row)]]

    columns = [asdict(column) for column in table.columns]
    rows = [[cell(one) for one in row] for row in table.rows]
    return {
        "title": table.title,
        "note": table.note,
        "columns": columns,
        "rows": rows,
        "heat": table.heat,
        "total": table.total,
    }


def _curve(rows: list[Row]) -> dict[str, Any]:
    sure = [row.low for row in list_timed_rows(rows) if row.low]
    low, high = min([0.5, *sure]) / 1.2, max([2.0, *sure]) * 1.2
    ps = [low * (high / low) ** (at / (_POINTS - 1)) for at in range(_POINTS)]
    return {"ps": ps, "lines": [_line(line, ps) for line in lines(rows)]}


def _line(line: Line, ps: list[float]) -> dict[str, Any]:
    return {"label": line.label, "run": line.run, "cpu": line.cpu, "values": compute_fast_p_curve(line.rows, ps)}


def _verdicts(rows: list[Row]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        if not row.degenerate:
            counts[row.verdict] = counts.get(row.verdict, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (item[0] != "CORRECT", -item[1])))


def _references(rows: list[Row], suite: "Suite") -> dict[str, str]:
    """By problem, of those that the suite has, or else the shipped ones."""
    found = {}
    for problem in dict.fromkeys(row.problem for row in rows):
        for read in (suite.read_problem, read_problem):
            with contextlib.suppress(UsageError):
                found[problem] = read(problem).show_source()
                break
    return found


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _data_block(name: str, content: Any) -> str:
    return f'<script type="application/json" id="{name}">{_embedded(content)}</script>'


def _embedded(content: Any) -> str:
    """JSON that cannot end the element it stands in: candidates choose their names, sources and logs."""
    return json.dumps(finite(content), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text: str) -> str:
    """What the browser compares before it runs a script: nothing else on the page can be one."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
