"""The candidate in a model's answer: from several blocks, from prose, without fences, cut off; and how it was found."""

import builtins
import re
import symtable
import warnings
from dataclasses import dataclass

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`]*)")
_PYTHON = ("", "python", "py", "python3", "triton")
_BEGINS = re.compile(r'(import |from |def |class |@|#|"""|r""")')
_ENDED = {
    "length": "the answer was cut off at the limit of tokens",
    "refusal": "the model refused",
    "content_filter": "the provider's filter stopped the answer",
}


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    closed: bool


@dataclass(frozen=True)
class Extraction:
    source: str | None
    """The candidate; None where there is nothing that could be one."""
    notes: list[str]
    """How it was found, in sentences."""


def extract(answer: str, finish_reason: str | None = None, entry: str = "solution") -> Extraction:
    """The last block that defines the entry, with earlier ones that it needs; without fences, the code in the text."""
    notes = [_ENDED[finish_reason]] if finish_reason in _ENDED else []
    text = _THOUGHT.sub("", answer)
    if text != answer:
        notes.append("left out what was marked as thinking")
    if not text.strip():
        return Extraction(None, [*notes, "the answer is empty"])
    blocks = blocks_of(text)
    source, more = _from_blocks(blocks, entry) if blocks else _from_prose(text, entry)
    return Extraction(source, [*notes, *more])


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks. The last may lack its closing fence."""
    blocks: list[Block] = []
    fence, language, lines = "", "", list[str]()
    for line in text.splitlines(keepends=True):
        found = _FENCE.fullmatch(line.rstrip())
        if found and not fence:
            fence, language, lines = found[1], found[2].strip().split(" ")[0].lower(), []
        elif found and found[1].startswith(fence) and not found[2]:
            blocks.append(Block(language, "".join(lines), closed=True))
            fence = ""
        elif fence:
            lines.append(line)
    return [*blocks, Block(language, "".join(lines), closed=False)] if fence else blocks


def _from_blocks(blocks: list[Block], entry: str) -> tuple[str | None, list[str]]:
    python = [block for block in blocks if block.language in _PYTHON and block.text.strip()]
    defining = [block for block in python if _defines(block.text, entry)]
    if not defining:
        return None, [f"none of the {len(blocks)} code blocks defines `{entry}`"]
    whole = [block for block in defining if _table(block.text)]
    chosen = (whole or defining)[-1]
    notes = [_which(chosen, defining, blocks, entry)]
    if not chosen.closed:
        notes.append("its block was never closed")
    if not whole:
        return chosen.text, [*notes, "it is not valid Python"]
    needed = _needed(chosen, [block for block in python[: python.index(chosen)] if block not in defining])
    if needed:
        notes.append(f"joined with {len(needed)} earlier blocks whose names it uses")
    return "\n\n".join(block.text for block in [*needed, chosen]), notes


def _which(chosen: Block, defining: list[Block], blocks: list[Block], entry: str) -> str:
    place = f"block {blocks.index(chosen) + 1} of {len(blocks)}"
    if len(defining) == 1:
        return f"took {place}"
    return f"{len(defining)} blocks define `{entry}`; took {place}, the last that is valid Python"


def _needed(chosen: Block, earlier: list[Block]) -> list[Block]:
    """Earlier blocks, in order, that define what a block uses and does not define itself."""
    missing = _undefined(chosen.text)
    needed: list[Block] = []
    for block in reversed(earlier):
        if _table(block.text) and missing & _defined(block.text):
            needed.insert(0, block)
            missing = (missing - _defined(block.text)) | _undefined(block.text)
    return needed


def _defines(source: str, entry: str) -> bool:
    return _writes_out(source, entry) or re.search(rf"^{entry}\s*[:=]", source, re.MULTILINE) is not None


def _writes_out(source: str, entry: str) -> bool:
    return re.search(rf"^(def|class) {entry}\b", source, re.MULTILINE) is not None


def _defined(source: str) -> set[str]:
    table = _table(source)
    names = table.get_symbols() if table else []
    return {symbol.get_name() for symbol in names if symbol.is_assigned() or symbol.is_imported()}


def _undefined(source: str) -> set[str]:
    """Names that a module uses and neither it nor Python defines."""
    table = _table(source)
    return _used(table) - _defined(source) - set(dir(builtins)) if table else set()


def _used(table: symtable.SymbolTable) -> set[str]:
    own = {s.get_name() for s in table.get_symbols() if s.is_global() or table.get_type() == "module"}
    return own.union(*(_used(child) for child in table.get_children()))


def _from_prose(text: str, entry: str) -> tuple[str | None, list[str]]:
    """No fences: the whole text, or the longest stretch of it that is Python and defines the entry."""
    if not _writes_out(text, entry):
        return None, ["there is no code in the answer"]
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if _BEGINS.match(line)]
    for start in starts:
        found = _parsed_from(lines[start:])
        if found and _writes_out(found, entry):
            return found, [f"no code block; took lines {start + 1} to {start + found.count(chr(10))} as code"]
    return "".join(lines[starts[0] :]), ["no code block; took the rest of the text, which is not valid Python"]


def _parsed_from(lines: list[str]) -> str | None:
    """As many lines from the first as are Python: what follows an error is cut off, and tried again."""
    while lines:
        try:
            _parse("".join(lines))
            return "".join(lines)
        except SyntaxError as error:
            lines = lines[: min(error.lineno or 1, len(lines)) - 1]
        except (ValueError, RecursionError, MemoryError):
            return None
    return None


def _table(source: str) -> symtable.SymbolTable | None:
    """The names of a source; None if it is not Python."""
    try:
        return _parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parse(source: str) -> symtable.SymbolTable:
    with warnings.catch_warnings(action="ignore"):
        return symtable.symtable(source, "answer", "exec")
