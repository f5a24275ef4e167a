"""Sections with tables as Markdown."""

import re
from collections.abc import Iterable

from pkb.base.printable import clean_line
from pkb.report.cells import Column, Table
from pkb.report.section import Section


def write_markdown(title: str, notes: Iterable[str], sections: Iterable[Section]) -> str:
    """Return a document with these notes, and with the sections that have a table."""
    parts = [f"# {title}", *map(escape_markdown, notes)]
    parts += [_write_section(section, section.table) for section in sections if section.table]
    return "\n\n".join(parts) + "\n"


def _write_section(section: Section, table: Table) -> str:
    head = f"## {escape_markdown(section.title)}\n\n{escape_markdown(section.note)}"
    return f"{head}\n\n{_write_table(table) if table.rows else 'None.'}"


def _write_table(table: Table) -> str:
    head = [_write_line(column.name for column in table.columns), f"|{'|'.join(map(_make_rule, table.columns))}|"]
    return "\n".join([*head, *(_write_line(cell.text for cell in row) for row in table.rows)])


def _make_rule(column: Column) -> str:
    return "---:" if column.number else "---"


def _write_line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(escape_markdown, texts))} |"


def escape_markdown(text: str) -> str:
    """Return a name or a reason as text in one line, without markup."""
    return re.sub(r"([\\`*\[\]<>|~])", r"\\\1", clean_line(text, len(text)))
