"""Sending and receiving both end at their deadline, whatever the other end does."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

from pkb.protocol.channel import Channel

LARGE = torch.zeros(1 << 24, dtype=torch.uint8)
SECONDS = 0.5


@pytest.fixture
def pair() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), theirs


@contextmanager
def repeat(action: Callable[[], object]) -> Iterator[None]:
    """Do something again and again, in a thread, until the block ends."""
    stopped = threading.Event()

    def run() -> None:
        while not stopped.wait(0.02):
            action()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def expect_timeout(action: Callable[[float], object]) -> None:
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        action(start + SECONDS)
    assert SECONDS <= time.monotonic() - start < SECONDS + 2


def test_a_reader_that_never_reads_ends_a_send(pair: tuple[Channel, socket.socket]) -> None:
    expect_timeout(lambda deadline: pair[0].send({}, [LARGE], deadline=deadline))


def test_many_small_tensors_end_at_the_same_deadline(pair: tuple[Channel, socket.socket]) -> None:
    expect_timeout(lambda deadline: pair[0].send({}, [torch.zeros(4096)] * 1000, deadline=deadline))


def test_a_reader_that_takes_a_little_at_a_time_does_not_extend_it(pair: tuple[Channel, socket.socket]) -> None:
    with repeat(lambda: pair[1].recv(4096)):
        expect_timeout(lambda deadline: pair[0].send({}, [LARGE], deadline=deadline))


def test_a_writer_that_sends_a_little_at_a_time_does_not_extend_it(pair: tuple[Channel, socket.socket]) -> None:
    pair[1].sendall((1 << 16).to_bytes(4, "big"))
    with repeat(lambda: pair[1].sendall(b"{")):
        expect_timeout(lambda deadline: pair[0].receive(deadline))


def test_descriptors_are_sent_within_a_deadline_too(pair: tuple[Channel, socket.socket]) -> None:
    fds = [pair[1].fileno()]

    def send_often(deadline: float) -> None:
        while True:
            pair[0].send({"text": "x" * 4096}, fds=fds, deadline=deadline)

    expect_timeout(send_often)


def test_a_deadline_of_one_message_is_not_that_of_the_next(pair: tuple[Channel, socket.socket]) -> None:
    other = Channel(pair[1])
    pair[0].send({"number": 1}, deadline=time.monotonic() + 0.2)
    time.sleep(0.3)
    pair[0].send({"number": 2})
    assert [other.receive()["number"] for _ in range(2)] == [1, 2]
