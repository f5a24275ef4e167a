"""The page: one HTML file with its style, its script and its data inside; it loads nothing from the network."""

import base64
import contextlib
import hashlib
import json
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkb.analyse import Row
from pkb.errors import UsageError
from pkb.problems.suite import find_shipped_suite
from pkb.report.cells import Table, TableCell
from pkb.report.sample_detail import describe_sample, make_finite
from pkb.report.section import Section

if TYPE_CHECKING:
    from pkb.problems.suite import Suite
    from pkb.report import Report

MOST_DETAILS = 5000
"""The most samples whose sources and evidence the page holds: some 10 kB each."""
_MOST_CHARACTERS = 200_000_000
"""The most characters of all details together."""
_FOLDER = Path(__file__).parent / "static"
_SCRIPTS = ("dom.js", "address.js", "charts.js", "tables.js", "sample.js", "sections.js", "page.js")
_COLUMNS = [field.name for field in fields(Row) if field.name != "folder"]


def write_page(report: "Report", suite: "Suite") -> str:
    """Return the page of a report; references are shown as `suite` has them."""
    references = _read_references(report.rows, suite)
    pieces = [_write_data(f"reference-{at}", text) for at, text in enumerate(references.values())]
    pieces += _write_details(report)
    style = (_FOLDER / "page.css").read_text(encoding="utf-8")
    script = "'use strict';\n{\n" + "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS) + "}\n"
    filling = {
        "@POLICY@": f"default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src {_hash(script)}; style-src {_hash(style)}",
        "@STYLE@": style,
        "@DATA@": _embed_json(_make_document(report, list(references))),
        "@DETAILS@": "\n".join(pieces),
        "@SCRIPT@": script,
    }
    template = (_FOLDER / "page.html").read_text(encoding="utf-8")
    return "".join(filling.get(piece, piece) for piece in _split_template(template, list(filling)))


def _write_details(report: "Report") -> list[str]:
    """Return what the page holds of single samples, up to a size that a browser still opens."""
    pieces, size = [], 0
    for at, row in _choose_rows(report):
        if found := describe_sample(row):
            pieces.append(_write_data(f"detail-{at}", found))
            size += len(pieces[-1])
        if size > _MOST_CHARACTERS:
            break
    return pieces


def _choose_rows(report: "Report") -> list[tuple[int, Row]]:
    """Return the samples that the page holds in full, with their indices: first those to which its tables link."""
    tables = [section.table for section in report.sections.values() if section.table]
    linked = {id(cell.row) for table in tables for row in table.rows for cell in row}
    return sorted(enumerate(report.rows), key=lambda item: id(item[1]) not in linked)[:MOST_DETAILS]


def _split_template(template: str, marks: list[str]) -> list[str]:
    """Return the template cut at its marks, so that nothing filled in is ever searched for marks itself."""
    pieces = [template]
    for mark in marks:
        before, _, after = pieces.pop().partition(mark)
        pieces += [before, mark, after]
    return pieces


def _make_document(report: "Report", references: list[str]) -> dict[str, Any]:
    index = {id(row): at for at, row in enumerate(report.rows)}
    shown = {name: section for name, section in report.sections.items() if section.on_page}
    return {
        "subtitle": report.subtitle,
        "origin": report.origin,
        "notices": report.notices,
        "runs": list(report.data.runs),
        "sections": [
            _make_section(name, section, index) for name, section in shown.items() if section.table or section.chart
        ],
        "references": {problem: at for at, problem in enumerate(references)},
        "most_details": MOST_DETAILS,
        "columns": _COLUMNS,
        "rows": [[_drop_nonfinite(getattr(row, name)) for name in _COLUMNS] for row in report.rows],
    }


def _make_section(name: str, section: Section, index: dict[int, int]) -> dict[str, Any]:
    return {
        "name": name,
        "title": section.title,
        "note": section.note,
        "table": section.table and _make_table(section.table, index),
        "chart": section.chart and asdict(section.chart),
        "fold_table": section.fold_table,
        "if_empty": section.if_empty,
    }


def _make_table(table: Table, index: dict[int, int]) -> dict[str, Any]:
    def make_cell(one: TableCell) -> list[Any]:
        return [one.text, one.value, None if one.row is None else index[id(one.row)]]

    columns = [asdict(column) for column in table.columns]
    rows = [[make_cell(one) for one in row] for row in table.rows]
    return {"columns": columns, "rows": rows, "heat": table.heat, "total": table.total}


def _read_references(rows: list[Row], suite: "Suite") -> dict[str, str]:
    """Return the references by problem: of the suite, or else of the shipped ones, if either has them."""
    found = {}
    for problem in dict.fromkeys(row.problem for row in rows):
        for owner in (suite, find_shipped_suite(problem)):
            if problem in owner.stems:
                with contextlib.suppress(UsageError):
                    found[problem] = owner.read_problem(problem).show_source()
                    break
    return found


def _drop_nonfinite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_data(name: str, content: Any) -> str:
    return f'<script type="application/json" id="{name}">{_embed_json(content)}</script>'


def _embed_json(content: Any) -> str:
    """Return JSON that cannot end the element around it: candidates choose their names, sources and logs."""
    return json.dumps(make_finite(content), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text: str) -> str:
    """Return the hash that the browser compares before it runs a script: it runs no other script on the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
