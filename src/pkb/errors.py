"""What a person did that pkb cannot work with. Printed as one line, never as a traceback."""


class UsageError(Exception):
    """A wrong argument, file or machine; the message ends with what to do next."""
