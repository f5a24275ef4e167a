"""The error for everything that a user can correct. It is printed as one line, never as a traceback."""


class UsageError(Exception):
    """A wrong argument, file or machine; the message ends with what to do next."""
