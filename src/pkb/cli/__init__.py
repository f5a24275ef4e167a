"""The command line: one file per verb. Modules whose names begin with an underscore are shared by several verbs."""

import io
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from pkb import __version__
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
        command = get_command(app)
        for parameter in command.params:
            # Every option has one (docs/guide.md): on a narrow terminal they take half of the help.
            if hasattr(parameter, "show_envvar"):
                parameter.show_envvar = False
        return command

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
        # Without a verb, a user wants to know which verbs there are; the parser would call that a mistake.
        asked = words or ["--help"]
        try:
            sys.exit(super().main(asked, "pkb", standalone_mode=False, auto_envvar_prefix="PKB", obj=words) or 0)
        except UsageError as error:
            _refuse(str(error))
        except typer.Abort:
            sys.exit(INTERRUPTED)
        except OSError as error:
            if error.errno is None:
                raise
            # A full disk, a folder without rights, a name that is too long: nothing that a traceback explains.
            _refuse(_describe_system_error(error))
        except Exception as error:
            # The parser's errors: their class has moved between typer's releases, this method has not.
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            _refuse(message().replace("\n", " ") + _show_example(error))

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
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"pkb {__version__}")
        raise typer.Exit


@app.callback()
def pkb(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, allow_from_autoenv=False, help="Print the version."
        ),
    ] = False,
) -> None:
    """Judge kernels that move data directly between GPUs: whether they are correct, how fast they are, and why."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows few letters shows the others as escapes: printing must not end a batch.
            stream.reconfigure(errors="backslashreplace")
    app()


def _refuse(message: str) -> None:
    # Messages quote names of files and fields that strangers chose.
    print(clean_line(f"pkb: {message}"), file=sys.stderr)
    sys.exit(MISTAKE)


def _describe_system_error(error: OSError) -> str:
    if error.filename is None:
        return f"the system refused: {error.strerror}; check the disk, memory and the limits of this shell"
    return f"cannot use {error.filename}: {error.strerror}; check the path, its rights and the disk"


def _show_example(error: Exception) -> str:
    """Return the example of the verb that the parser's error is about, if an argument or a verb is missing there."""
    context = getattr(error, "ctx", None)
    if context is None or not error.format_message().startswith("Missing "):  # type: ignore[attr-defined]
        return ""
    lines = (context.command.help or "").splitlines()
    example = next((line.strip() for line in lines if line.strip().startswith("Example: ")), "")
    return f" {example}; `{context.command_path} --help` explains all options" if example else ""
