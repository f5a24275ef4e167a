"""The command line: one file per verb. Modules whose names begin with an underscore are shared by several verbs."""

import io
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from pkb.base.printable import clean_line
from pkb.cli._messages import INTERRUPTED, MISTAKE
from pkb.errors import UsageError


class _Verbs(Mapping[str, Any]):
    """The commands by name, each made when it is looked up: `pkb list` imports nothing that only `pkb eval` needs."""

    def __init__(self) -> None:
        names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
        # A trailing underscore only keeps a file's name apart from Python's own words.
        self._modules = {name.rstrip("_"): f"{__name__}.{name}" for name in names}

    def __getitem__(self, verb: str) -> Any:
        app = typer.Typer(add_completion=False, rich_markup_mode="rich")
        import_module(self._modules[verb]).register(app)
        return get_command(app)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class _CommandLine(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Verbs()  # type: ignore[assignment]

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> None:
        """Run a verb and exit. A user's mistake is one line on stderr and exit code 2, never a traceback."""
        words = [*(sys.argv[1:] if args is None else args)]
        try:
            sys.exit(super().main(words, "pkb", standalone_mode=False, auto_envvar_prefix="PKB", obj=words) or 0)
        except UsageError as error:
            _refuse(str(error))
        except typer.Abort:
            sys.exit(INTERRUPTED)
        except OSError as error:
            if error.filename is None:
                raise
            # A full disk, a folder without rights, a name that is too long: nothing that a traceback explains.
            _refuse(f"cannot use {error.filename}: {error.strerror}; check the path, its rights and the disk")
        except Exception as error:
            # The parser's errors: their class has moved between typer's releases, this method has not.
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            _refuse(message().replace("\n", " "))

    def invoke(self, ctx: Any) -> Any:
        """Run the named verb. A reader of our output that is gone (`pkb list | head`) ends it, and is no error."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes stdout once more when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return None
        return result


app = typer.Typer(
    name="pkb",
    cls=_CommandLine,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def pkb() -> None:
    """Judge kernels that move data directly between GPUs: whether they are correct, how fast they are, and why."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows few letters shows the others as escapes: printing must not end a batch.
            stream.reconfigure(errors="backslashreplace")
    app()


def _refuse(message: str) -> None:
    # Without a verb the parser has printed the help already, and its message is empty.
    if message:
        # Messages quote names of files and fields that strangers chose.
        print(clean_line(f"pkb: {message}"), file=sys.stderr)
    sys.exit(MISTAKE)
