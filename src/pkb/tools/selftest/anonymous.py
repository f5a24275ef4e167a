"""Take out of texts what names a person or a machine, so that a record of a self-test can be shared."""

import getpass
import platform as system
import re
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

_PUBLIC = ("/dev/", "/proc/", "/sys/")
"""Paths that every machine has."""
_PATH = re.compile(r"(?<![\w./:>])(?:~|\.{1,2})?/[\w.@+~-][^\s'\"`,;:()\[\]<>|]*")
_UUID = re.compile(r"(?:(?:GPU|MIG)-)?\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_ADDRESS = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?![.\d])|\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b")
_LEAST_NAME = 3
_ORDINARY = {"root", "localhost", "user", "none"}
"""Names of users and hosts that tell nothing."""


def anonymize(value: Any) -> Any:
    """Return JSON values with every text in them anonymous. Keys are our own words, and stay."""
    if isinstance(value, str):
        return _anonymize_text(value)
    if isinstance(value, dict):
        return {key: anonymize(one) for key, one in value.items()}
    return [anonymize(one) for one in value] if isinstance(value, list | tuple) else value


def _anonymize_text(text: str) -> str:
    shorter = _PATH.sub(lambda found: found[0] if found[0].startswith(_PUBLIC) else "<path>", text)
    shorter = _ADDRESS.sub("<address>", _UUID.sub("<uuid>", shorter))
    for name, substitute in _list_names():
        shorter = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", substitute, shorter, flags=re.IGNORECASE)
    return shorter


@cache
def _list_names() -> list[tuple[str, str]]:
    """Return the names of this user and this host with their substitutes, longer names first."""
    names = [*((name, "<user>") for name in _find_users()), *((name, "<host>") for name in _find_hosts())]
    telling = {name: word for name, word in names if len(name) >= _LEAST_NAME and name.lower() not in _ORDINARY}
    return sorted(telling.items(), key=lambda pair: -len(pair[0]))


def _find_users() -> Iterator[str]:
    try:
        yield getpass.getuser()
        yield Path.home().name
    except (KeyError, OSError, RuntimeError):
        # A user without an entry in the password file has no name.
        return


def _find_hosts() -> Iterator[str]:
    for name in (socket.gethostname(), system.node()):
        yield name
        yield name.partition(".")[0]
