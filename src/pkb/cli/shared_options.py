"""Options that several commands share, as a dataclass: said once, and handed over as one object."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import Any, Concatenate, TypeVar, get_type_hints

Options = TypeVar("Options")


def sharing(options: type[Options]) -> Callable[[Callable[Concatenate[Options, ...], None]], Callable[..., None]]:
    """Give a command an option for each field of a dataclass; it gets them as its first argument."""

    def decorate(command: Callable[Concatenate[Options, ...], None]) -> Callable[..., None]:
        shared = _parameters(options)
        names = {parameter.name for parameter in shared}
        own = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in inspect.signature(command).parameters.values()][1:]

        @functools.wraps(command)
        def called(**given: Any) -> None:
            command(options(**{name: given.pop(name) for name in names}), **given)

        parameters = sorted([*own, *shared], key=lambda each: each.default is not Parameter.empty)
        called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        return called

    return decorate


def _parameters(options: type) -> list[Parameter]:
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
