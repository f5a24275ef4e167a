"""What ranks print is read to its end, but not for ever."""

import os
import threading
import time

from pkb.judge.worlds.logs import Logs


def test_what_was_printed_before_the_end_is_kept() -> None:
    read, write = os.pipe()
    logs = Logs([read], 1 << 20)
    os.write(write, b"last words\n")
    os.close(write)
    logs.close()
    assert logs.text(0) == "last words\n"


def test_a_process_that_prints_for_ever_holds_nobody_up() -> None:
    read, write = os.pipe()
    logs, ended = Logs([read], 1 << 20), threading.Event()

    def flood() -> None:
        while not ended.is_set():
            try:
                os.write(write, b"x" * 4096)
            except BrokenPipeError:
                return

    thread = threading.Thread(target=flood)
    thread.start()
    start = time.monotonic()
    logs.close()
    assert time.monotonic() - start < 5
    ended.set()
    thread.join()
    os.close(write)
