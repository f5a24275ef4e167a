"""A candidate must not leave a thread running: its work belongs inside the call."""

import threading
from collections.abc import Sequence

from pkb.checks import Breach, Check, Observations
from pkb.settings import Track


class ThreadCheck(Check):
    name = "threads"
    report_type = list[str]

    def __init__(self, observer: Observations):
        super().__init__(observer)
        self._before = set(threading.enumerate())

    def report(self) -> list[str]:
        """Return the names of threads that were started since and still run."""
        return [thread.name for thread in threading.enumerate() if thread not in self._before and thread.is_alive()]

    @staticmethod
    def conclude(reports: Sequence[list[str]], track: Track) -> Breach | None:
        for rank, names in enumerate(reports):
            if names:
                reason = f"rank {rank} left the thread {names[0]} running; finish inside the call"
                return Breach("CHEAT", reason, rank)
        return None


CHECK = ThreadCheck
