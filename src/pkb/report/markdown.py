"""Tables in Markdown."""

import re
from collections.abc import Iterable

from pkb.report.cells import Column, Table


def markdown(title: str, notes: Iterable[str], tables: Iterable[Table]) -> str:
    sections = [f"# {title}", *map(escaped, notes), *map(_section, tables)]
    return "\n\n".join(sections) + "\n"


def _section(table: Table) -> str:
    return f"## {escaped(table.title)}\n\n{escaped(table.note)}\n\n{_grid(table) if table.rows else 'None.'}"


def _grid(table: Table) -> str:
    head = [_line(column.name for column in table.columns), f"|{'|'.join(map(_rule, table.columns))}|"]
    return "\n".join([*head, *(_line(cell.text for cell in row) for row in table.rows)])


def _rule(column: Column) -> str:
    return "---:" if column.number else "---"


def _line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(escaped, texts))} |"


def escaped(text: str) -> str:
    """A name or a reason stays a text: no markup, no second line."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return re.sub(r"([\\`*\[\]<>|~])", r"\\\1", shown)
