"""The entry point of the command `pkb`, and of `python -m pkb`."""

import sys


def main() -> None:
    """Run the command line; Ctrl+C ends it without a traceback, also while it is being imported."""
    try:
        from pkb.cli import main as run

        run()
    except KeyboardInterrupt:
        # What a shell reports for a process that SIGINT ended.
        sys.exit(130)


if __name__ == "__main__":
    main()
