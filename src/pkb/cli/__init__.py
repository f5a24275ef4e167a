"""The command line: one file per verb; thin: parse, call, print."""

import sys

import typer

from pkb.cli.options import PROFILERS
from pkb.errors import UsageError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Judge kernels that move data directly between GPUs: right or wrong, how fast, and why.",
)


def main() -> None:
    """Run `pkb`. What a person got wrong is one line on stderr and exit code 2, never a traceback."""
    from pkb.cli import (
        agent,
        baseline,
        check,
        doctor,
        dryrun,
        evaluate,
        export,
        generate,
        inspect,
        lint,
        prompt,
        redteam,
        refine,
        report,
        roofline,
        show,
    )
    from pkb.cli import list_ as listing

    verbs = (evaluate, listing, show, check, dryrun, inspect, lint, redteam, prompt, generate, refine, agent)
    for verb in (*verbs, report, roofline, baseline, export, doctor):
        verb.register(app)
    try:
        arguments = with_profiler_named(sys.argv[1:])
        sys.exit(app(arguments, auto_envvar_prefix="PKB", standalone_mode=False) or 0)
    except UsageError as error:
        _refuse(str(error))
    except BrokenPipeError:
        # The reader of our output has gone (`pkb list | head`): nothing is wrong.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        # The parser's own: its class has moved between typer's releases, its method has not.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        _refuse(message().replace("\n", " "))


def with_profiler_named(arguments: list[str]) -> list[str]:
    """`--profile` alone means torch's profiler; the parser wants that said."""
    named = []
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        bare = word == "--profile" and "--" not in named and following not in PROFILERS
        named += [word, PROFILERS[0]] if bare else [word]
    return named


def _refuse(message: str) -> None:
    # Without a command the parser has printed the help and has nothing more to say.
    if message:
        print(f"pkb: {message}", file=sys.stderr)
    sys.exit(2)
