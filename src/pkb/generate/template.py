"""Texts of prompts, in TOML: the shipped ones, and a user's file that replaces parts of them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template as Text
from typing import Any

from pkb.backends import find_backend
from pkb.errors import UsageError

_FOLDER = Path(__file__).parent / "templates"
_SHIPPED = ("prompt.toml", "feedback.toml", "agent.toml")
_GENERAL = "general.toml"
"""The text of backends that have no file of their own."""


@dataclass(frozen=True)
class Template:
    """The merged texts. Later files win: shipped texts, the backend's, those of the problem's form, the user's."""

    parts: Mapping[str, Any]

    @classmethod
    def load(cls, backend: str, own: Path | None = None, form: str = "") -> "Template":
        """Read and merge the files. `form` names a folder with files of the same names, for one kind of problem."""
        specific = f"{find_backend(backend).name}.toml"
        names = (*_SHIPPED, specific if (_FOLDER / specific).is_file() else _GENERAL)
        over = [path for name in names if form and (path := _FOLDER / form / name).is_file()]
        layers = [_read(path) for path in [*(_FOLDER / name for name in names), *over]]
        merged: dict[str, Any] = {"title": backend}
        for layer in [*layers, *([_read(own)] if own else [])]:
            merged = _merge(merged, layer, own)
        return cls(merged)

    def fill(self, table: str, name: str, values: Mapping[str, str]) -> str:
        """Return a text of a table with its $names filled in."""
        try:
            return Text(self.parts[table][name]).substitute(values)
        except KeyError as error:
            known = ", ".join(sorted(values))
            raise UsageError(f"the text {table}.{name} of the template names {error}; it may name {known}") from error
        except ValueError as error:
            raise UsageError(f"the text {table}.{name} of the template: {error}; write $$ for a dollar sign") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the template {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the template {path} is not TOML: {error}") from error


def _merge(under: dict[str, Any], over: dict[str, Any], own: Path | None) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        beneath = under.get(key, value)
        if type(beneath) is not type(value):
            raise UsageError(f"{key} in {own} must be a {type(beneath).__name__}, not a {type(value).__name__}")
        merged[key] = _merge(beneath, value, own) if isinstance(value, dict) else value
    return merged
