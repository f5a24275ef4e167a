"""An exception in the judge itself: a failure for which no candidate is blamed, with the traceback as evidence."""

import errno
import traceback
from typing import Any

from pkb.base.printable import clean_line
from pkb.errors import UsageError
from pkb.failure import Failure
from pkb.record import Verdict

_MOST_FRAMES, _MOST_TEXT = 30, 500
_FULL = "the disk is full: make room there, or set TMPDIR (for files of a record, --out) to a folder with more room"
_TOO_MANY_FILES = "too many files are open: raise the limit, as with `ulimit -n 4096`"
_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EMFILE: _TOO_MANY_FILES,
    errno.ENFILE: _TOO_MANY_FILES,
    errno.EAGAIN: "this user may start no further process: end some, or raise the limit, as with `ulimit -u 4096`",
}
"""What to do about the errors of a machine that has run out of something."""
_REPORT = "this is no fault of the candidate: please report it, with this record"


def explain_exception(error: Exception, check: str = "judge", **facts: Any) -> Failure:
    """Return a Failure as it is; for any other exception, the failure that a record states."""
    if isinstance(error, Failure):
        return error
    name, message = type(error).__name__, clean_line(str(error), _MOST_TEXT)
    said = f"{name}: {message}" if message else name
    return Failure(
        Verdict.ENVIRONMENT,
        # An error of the user has its own advice.
        message if isinstance(error, UsageError) else f"the judge raised {said}; {_advise(error)}",
        check=check,
        type=name,
        message=message,
        traceback=_list_frames(error),
        **facts,
    )


def _advise(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "its memory is full: end other programs, or choose a smaller --size"
    return _ADVICE.get(error.errno or 0, _REPORT) if isinstance(error, OSError) else _REPORT


def _list_frames(error: Exception) -> list[str]:
    """Return the innermost frames of an exception, outermost first, one line each."""
    frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    lines = [f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line or ''}" for frame in frames]
    return [clean_line(line, _MOST_TEXT) for line in lines]
