"""Judge or screen a kernel. Usage: ./pkb eval [FILE], or ./pkb check [FILE]; without a file, candidate.py."""

import json
import pathlib
import socket
import sys

_VERBS = ("eval", "check")


def main(words: list[str]) -> str:
    if not words or words[0] not in _VERBS or len(words) > 2:
        return (__doc__ or "") + "\n"
    path = pathlib.Path(words[1] if len(words) > 1 else "candidate.py")
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return f"cannot read {path}: {error}\n"
    with socket.socket(socket.AF_UNIX) as judge:
        judge.connect(str(pathlib.Path(__file__).resolve().parent / ".judge"))
        judge.sendall(json.dumps({"do": words[0], "source": source}).encode() + b"\n")
        with judge.makefile() as answer:
            return answer.read()


if __name__ == "__main__":
    print(main(sys.argv[1:]), end="")
