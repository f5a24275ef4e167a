"""Finds the candidate in a model's answer: in one of several blocks, in prose, without fences, or cut off."""

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
class CodeBlock:
    language: str
    text: str
    closed: bool


@dataclass(frozen=True)
class Extraction:
    source: str | None
    """The candidate; None where there is nothing that could be one."""
    notes: list[str]
    """How the candidate was found, in sentences."""


def extract(answer: str, finish_reason: str | None = None, entry: str = "solution") -> Extraction:
    """Return the last block that defines the entry, with the earlier blocks that it needs. Without fences, return the
    code that stands in the text."""
    notes = [_ENDED[finish_reason]] if finish_reason in _ENDED else []
    text = _THOUGHT.sub("", answer)
    if text != answer:
        notes.append("left out what was marked as thinking")
    if not text.strip():
        return Extraction(None, [*notes, "the answer is empty"])
    blocks = find_blocks(text)
    source, more = _extract_from_blocks(blocks, entry) if blocks else _extract_from_prose(text, entry)
    return Extraction(source, [*notes, *more])


def find_blocks(text: str) -> list[CodeBlock]:
    """Return the fenced blocks. The last block may lack its closing fence."""
    blocks: list[CodeBlock] = []
    fence, language, lines = "", "", list[str]()
    for line in text.splitlines(keepends=True):
        found = _FENCE.fullmatch(line.rstrip())
        if found and not fence:
            fence, language, lines = found[1], found[2].strip().split(" ")[0].lower(), []
        elif found and found[1].startswith(fence) and not found[2]:
            blocks.append(CodeBlock(language, "".join(lines), closed=True))
            fence = ""
        elif fence:
            lines.append(line)
    return [*blocks, CodeBlock(language, "".join(lines), closed=False)] if fence else blocks


def _extract_from_blocks(blocks: list[CodeBlock], entry: str) -> tuple[str | None, list[str]]:
    python = [block for block in blocks if block.language in _PYTHON and block.text.strip()]
    defining = [block for block in python if _has_binding(block.text, entry)]
    if not defining:
        return None, [f"none of the {len(blocks)} code blocks defines `{entry}`"]
    whole = [block for block in defining if _try_parse(block.text)]
    chosen = (whole or defining)[-1]
    notes = [_describe_choice(chosen, defining, blocks, entry)]
    if not chosen.closed:
        notes.append("its block was never closed")
    if not whole:
        return chosen.text, [*notes, "it is not valid Python"]
    needed = _find_needed_blocks(chosen, [block for block in python[: python.index(chosen)] if block not in defining])
    if needed:
        notes.append(f"joined with {len(needed)} earlier blocks whose names it uses")
    return "\n\n".join(block.text for block in [*needed, chosen]), notes


def _describe_choice(chosen: CodeBlock, defining: list[CodeBlock], blocks: list[CodeBlock], entry: str) -> str:
    place = f"block {blocks.index(chosen) + 1} of {len(blocks)}"
    if len(defining) == 1:
        return f"took {place}"
    return f"{len(defining)} blocks define `{entry}`; took {place}, the last that is valid Python"


def _find_needed_blocks(chosen: CodeBlock, earlier: list[CodeBlock]) -> list[CodeBlock]:
    """Return the earlier blocks, in order, that define what a block uses and does not define itself."""
    missing = _list_missing_names(chosen.text)
    needed: list[CodeBlock] = []
    for block in reversed(earlier):
        if _try_parse(block.text) and missing & _list_defined_names(block.text):
            needed.insert(0, block)
            missing = (missing - _list_defined_names(block.text)) | _list_missing_names(block.text)
    return needed


def _has_binding(source: str, entry: str) -> bool:
    return _has_definition(source, entry) or re.search(rf"^{entry}\s*[:=]", source, re.MULTILINE) is not None


def _has_definition(source: str, entry: str) -> bool:
    return re.search(rf"^(def|class) {entry}\b", source, re.MULTILINE) is not None


def _list_defined_names(source: str) -> set[str]:
    table = _try_parse(source)
    names = table.get_symbols() if table else []
    return {symbol.get_name() for symbol in names if symbol.is_assigned() or symbol.is_imported()}


def _list_missing_names(source: str) -> set[str]:
    """Return the names that a module uses and that neither the module nor Python defines."""
    table = _try_parse(source)
    return _list_used_names(table) - _list_defined_names(source) - set(dir(builtins)) if table else set()


def _list_used_names(table: symtable.SymbolTable) -> set[str]:
    own = {s.get_name() for s in table.get_symbols() if s.is_global() or table.get_type() == "module"}
    return own.union(*(_list_used_names(child) for child in table.get_children()))


def _extract_from_prose(text: str, entry: str) -> tuple[str | None, list[str]]:
    """Return the part of a text without fences that is Python and defines the entry, and notes on how it was found."""
    if not _has_definition(text, entry):
        return None, ["there is no code in the answer"]
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if _BEGINS.match(line)]
    for start in starts:
        found = _cut_at_error(lines[start:])
        if found and _has_definition(found, entry):
            return found, [f"no code block; took lines {start + 1} to {start + found.count(chr(10))} as code"]
    return "".join(lines[starts[0] :]), ["no code block; took the rest of the text, which is not valid Python"]


def _cut_at_error(lines: list[str]) -> str | None:
    """Return the longest run of first lines that is Python: drop everything from a syntax error on, and try again."""
    while lines:
        try:
            _parse("".join(lines))
            return "".join(lines)
        except SyntaxError as error:
            lines = lines[: min(error.lineno or 1, len(lines)) - 1]
        except (ValueError, RecursionError, MemoryError):
            return None
    return None


def _try_parse(source: str) -> symtable.SymbolTable | None:
    """Return the symbol table of a source; None if the source is not Python."""
    try:
        return _parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parse(source: str) -> symtable.SymbolTable:
    with warnings.catch_warnings(action="ignore"):
        return symtable.symtable(source, "answer", "exec")
