"""What ranks print: drained as it comes, its beginning and end kept, too much of it noticed."""

import contextlib
import os
import re
import select
import threading
import time

_KEPT = 64 << 10
_CHUNK = 64 << 10
_CLOSE_S = 1.0
"""Seconds to read what is left when the log is closed: a stray process may write for ever."""
_LAST_WORDS_S = 0.3
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')
_OURS = re.compile(r"/pkb/|/torch/|/triton/|/python3|<frozen")
_FATAL = "Fatal Python error: "
"""How Python begins its report of a signal such as SIGSEGV."""


class Logs:
    """The printed output of a world's ranks, read by a thread of its own."""

    def __init__(self, fds: list[int], limit: int):
        self._fds = dict(zip(fds, range(len(fds)), strict=True))
        self._limit = limit
        self._heads = [bytearray() for _ in fds]
        self._tails = [bytearray() for _ in fds]
        self._counts = [0] * len(fds)
        self._ended = [threading.Event() for _ in fds]
        self.flooded: int | None = None
        """The first rank that printed more than the limit."""
        self._wake, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        open_fds = dict(self._fds)
        poll = select.poll()
        for fd in (*open_fds, self._wake):
            poll.register(fd, select.POLLIN)
        while open_fds and self._wake not in self._read_once(poll, open_fds):
            pass
        # Now that the log is closed, take only what is there: a stray process may hold its end open for ever.
        deadline = time.monotonic() + _CLOSE_S
        while open_fds and time.monotonic() < deadline and self._read_once(poll, open_fds, 0) - {self._wake}:
            pass

    def _read_once(self, poll: select.poll, open_fds: dict[int, int], timeout: int | None = None) -> set[int]:
        """Read from the logs that have something to read; return all descriptors that had."""
        ready = {fd for fd, _ in poll.poll(timeout)}
        for fd in ready & open_fds.keys():
            if data := os.read(fd, _CHUNK):
                self._keep(open_fds[fd], data)
            else:
                poll.unregister(fd)
                self._ended[open_fds.pop(fd)].set()
        return ready

    def _keep(self, rank: int, data: bytes) -> None:
        room = _KEPT - len(self._heads[rank])
        self._heads[rank] += data[:room]
        self._tails[rank] = (self._tails[rank] + data[room:])[-_KEPT:] if len(data) > room else self._tails[rank]
        self._counts[rank] += len(data)
        if self._counts[rank] > self._limit and self.flooded is None:
            self.flooded = rank

    def text(self, rank: int) -> str:
        head, tail = bytes(self._heads[rank]), bytes(self._tails[rank])
        dropped = self._counts[rank] - len(head) - len(tail)
        gap = f"\n[... {dropped} bytes left out ...]\n".encode() if dropped else b""
        return (head + gap + tail).decode(errors="replace")

    def tail(self, rank: int, count: int) -> str:
        return self.text(rank)[-count:]

    def stack(self, rank: int) -> list[str]:
        """The candidate's own frames, innermost first, from the dump that a hanging rank was asked for."""
        return _read_stack(self.text(rank))

    def split_fatal(self, rank: int, count: int = 1 << 20) -> tuple[str, list[str]]:
        """Return the end of what a rank printed, and the candidate's frames of the signal that ended the rank.

        The signal's report, which names files of the judge, is no part of what the rank printed.
        """
        # The rank has ended, and what it printed last may not have been read yet.
        self._ended[rank].wait(_LAST_WORDS_S)
        printed, found, dump = self.text(rank).rpartition(_FATAL)
        return (printed[-count:], _read_stack(dump)) if found else (dump[-count:], [])

    def close(self) -> None:
        os.write(self._waker, b"x")
        self._thread.join()
        for fd in (*self._fds, self._wake, self._waker):
            with contextlib.suppress(OSError):
                os.close(fd)


def _read_stack(text: str) -> list[str]:
    """Return the candidate's own frames, innermost first, of the last stack in a text."""
    dump = text.rpartition("most recent call first")[2]
    frames = [f for f in _FRAME.findall(dump) if not _OURS.search(f[0])]
    return [f"{function}, line {line} of {os.path.basename(file)}" for file, line, function in frames]
