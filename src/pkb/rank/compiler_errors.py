"""What a compiler complained about, without the noise around it."""

import re

_MOST_LINES = 20
_WIDTH = 200
_MATTERS = re.compile(
    r"\berror\s*:|\bfatal\s*:|required from here|"
    r"undefined reference|multiple definition|cannot find|: not found$|Killed"
)
# Said only because something above went wrong.
_ECHO = re.compile(r"^collect2: error|^ptxas fatal|^compilation terminated|^clang.*: error: linker command failed")
_COMMAND = re.compile(r"^\[\d+/\d+\] |^ninja: |^FAILED: ")
_CARET = re.compile(r"^[\s|]*[\^~][\s^~]*$")


def errors(output: str) -> list[str]:
    """The first errors with file and line, each with the source line under it; the last lines when none is found."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip() and not _COMMAND.match(line)]
    found: list[str] = []
    for k, line in enumerate(lines):
        if _MATTERS.search(line):
            found += [line, *_source_lines(lines[k + 1 : k + 4])]
    telling = [line for line in found if not _ECHO.match(line)] or found or lines[-3:]
    return [line[:_WIDTH] for line in telling[:_MOST_LINES]] or ["the compiler said nothing"]


def _source_lines(following: list[str]) -> list[str]:
    """What is indented under an error: the source, and where a template came from."""
    taken = []
    for line in following:
        if not line[0].isspace():
            break
        if not _CARET.match(line):
            taken.append(line)
    return taken
