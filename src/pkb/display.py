"""How results read: ratios and times in significant digits, and facts as HTML for notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from pkb.base.printable import clean_line, clean_lines

CPU_TIMES = "CPU times"
_TONES = {"CORRECT": "#18713c", "FASTER": "#18713c", "ENVIRONMENT": "#8a5a00", "SLOWER": "#8a5a00"}
_BAD = "#b3261e"
_SAFE = '<div class="tex2jax_ignore mathjax_ignore">'
"""A notebook would set what a candidate wrote between dollars as a formula."""
_LEFT = ' style="text-align:left;vertical-align:top"'


def format_ratio(value: float) -> str:
    """Return a ratio in three significant digits or fewer, such as 1.52x or 0.0046x; it is never 0.00x."""
    if value >= 9.95:
        return f"{value:.3g}x"
    return f"{value:.2f}x" if value >= 0.0995 else f"{value:.2g}x"


def format_speedup(speedup: float, low: float, high: float, comparable: bool = True) -> str:
    """Return a speed-up with its interval; one from times that are not comparable says that these are CPU times."""
    ends = f"{format_ratio(low).removesuffix('x')}-{format_ratio(high).removesuffix('x')}"
    return f"{format_ratio(speedup)} ({ends})" + ("" if comparable else f", {CPU_TIMES}")


def format_duration(us: float | None) -> str:
    if us is None:
        return ""
    size, unit = (1e6, "s") if us >= 999500 else (1e3, "ms") if us >= 999.5 else (1, "us")
    return f"{us / size:#.3g}".removesuffix(".") + f" {unit}"


def write_facts(title: str, word: str, facts: Mapping[str, object], texts: Mapping[str, str]) -> str:
    """Return HTML with a title, a coloured word, a table of facts, and longer texts to unfold. Empty ones are left out.

    Everything is escaped: candidates choose names, messages and what they print.
    """
    tone = f' <b style="color:{_TONES.get(word, _BAD)}">{_quote(word)}</b>' if word else ""
    rows = "".join(
        f"<tr><th{_LEFT}>{_quote(name)}</th><td{_LEFT}>{_quote(str(value))}</td></tr>"
        for name, value in facts.items()
        if value not in (None, "")
    )
    folds = "".join(
        f"<details><summary>{_quote(name)}</summary><pre>{escape(clean_lines(text))}</pre></details>"
        for name, text in texts.items()
        if text
    )
    return f"{_SAFE}<p><b>{_quote(title)}</b>{tone}</p><table>{rows}</table>{folds}</div>"


def write_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table under a title, with everything escaped."""
    head = "".join(f"<th{_LEFT}>{_quote(name)}</th>" for name in columns)
    lines = "".join(f"<tr>{''.join(f'<td{_LEFT}>{_quote(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"{_SAFE}<p><b>{_quote(title)}</b></p><table><tr>{head}</tr>{lines}</table></div>"


def _quote(text: str) -> str:
    return escape(clean_line(text))
