"""Options that several verbs share, declared once as the fields of a dataclass."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import Any, Concatenate, TypeVar, get_type_hints

Options = TypeVar("Options")


def add_options(options: type[Options]) -> Callable[[Callable[Concatenate[Options, ...], None]], Callable[..., None]]:
    """Return a decorator that gives a command one option per field, and passes it the dataclass as first argument."""

    def decorate(command: Callable[Concatenate[Options, ...], None]) -> Callable[..., None]:
        shared = _make_parameters(options)
        names = {parameter.name for parameter in shared}
        own = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in inspect.signature(command).parameters.values()][1:]

        @functools.wraps(command)
        def call(**values: Any) -> None:
            command(options(**{name: values.pop(name) for name in names}), **values)

        parameters = sorted([*own, *shared], key=lambda each: each.default is not Parameter.empty)
        call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        return call

    return decorate


def _make_parameters(options: type) -> list[Parameter]:
    hints = get_type_hints(options, include_extras=True)
    return [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(options)
    ]
