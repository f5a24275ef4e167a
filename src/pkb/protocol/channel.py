"""The stream between judge, nursery and ranks: a length, a JSON header, then raw bytes. Never pickle."""

import contextlib
import json
import math
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pkb.base.tensors import settle_bits

Message = dict[str, Any]

_LENGTH = struct.Struct("!I")
_ORDER_BYTES = 16 << 20
_MOST_FDS = 128
MOST_RANKS = _MOST_FDS // 2
"""The most ranks of one world: the order that starts them carries the socket and the log of each."""


class ChannelClosed(Exception):
    """The other side has gone."""


class ChannelGarbled(Exception):
    """What arrived is no message."""


class Channel:
    """One end of a stream. `deadline` is a time.monotonic() value; past it, TimeoutError."""

    def __init__(self, sock: socket.socket):
        self.sock = sock

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def hang_up(self) -> None:
        """Shut the stream down. Unlike close(), this may come from another thread: a waiting receive() ends."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def send(
        self, header: Message, tensors: Sequence[Tensor] = (), fds: Sequence[int] = (), deadline: float = math.inf
    ) -> None:
        """Send one message. After a TimeoutError the other end may have half of it: only closing is left to do."""
        body = json.dumps(header).encode()
        frame = _LENGTH.pack(len(body)) + body
        try:
            self._limit_wait(deadline)
            sent = socket.send_fds(self.sock, [frame], fds) if fds else 0
            self._send_bytes(memoryview(frame)[sent:], deadline)
            for tensor in tensors:
                self._send_bytes(raw_bytes(tensor), deadline)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ChannelClosed from error

    def _send_bytes(self, content: memoryview, deadline: float) -> None:
        self._limit_wait(deadline)
        # The timeout is for all bytes together: a reader that takes a few at a time does not extend it.
        self.sock.sendall(content)

    def _limit_wait(self, deadline: float) -> None:
        """Have the next call of the socket end at the deadline. Raise TimeoutError if that has passed."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(None if math.isinf(left) else left)

    def receive(self, deadline: float = math.inf) -> Message:
        """Receive an order, whose sender is trusted. Answers come through `pkb.judge.worlds.gate`."""
        return _read_header(self.receive_frame(deadline))

    def receive_frame(self, deadline: float = math.inf, most_bytes: int = _ORDER_BYTES) -> bytearray:
        """Receive the bytes of a header, unread. Raises ChannelGarbled if there are more than `most_bytes`."""
        return self._receive_body(self._receive_exactly(_LENGTH.size, deadline), deadline, most_bytes)

    def receive_with_fds(self) -> tuple[Message, list[int]]:
        try:
            start, fds, _, _ = socket.recv_fds(self.sock, _LENGTH.size, _MOST_FDS)
        except ConnectionResetError as error:
            # Of a peer that went away without having read all that it was sent.
            raise ChannelClosed from error
        if not start:
            raise ChannelClosed
        rest = self._receive_exactly(_LENGTH.size - len(start), math.inf)
        return _read_header(self._receive_body(start + rest, math.inf, _ORDER_BYTES)), list(fds)

    def receive_tensor(self, shape: Sequence[int], dtype: torch.dtype, deadline: float) -> Tensor:
        count = math.prod(shape) * dtype.itemsize
        if count == 0:
            return torch.empty(tuple(shape), dtype=dtype)
        return torch.frombuffer(self._receive_exactly(count, deadline), dtype=dtype).reshape(tuple(shape))

    def _receive_body(self, start: bytes | bytearray, deadline: float, most_bytes: int) -> bytearray:
        (length,) = _LENGTH.unpack(start)
        if length > most_bytes:
            raise ChannelGarbled(f"a header of {length} bytes")
        return self._receive_exactly(length, deadline)

    def _receive_exactly(self, count: int, deadline: float) -> bytearray:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            got = self._receive_some(view, deadline)
            view = view[got:]
        return buffer

    def _receive_some(self, view: memoryview, deadline: float) -> int:
        self._limit_wait(deadline)
        try:
            got = self.sock.recv_into(view)
        except ConnectionResetError:
            got = 0
        if not got:
            raise ChannelClosed
        return got


def _read_header(frame: bytearray) -> Message:
    try:
        header = json.loads(frame)
    except (ValueError, RecursionError) as error:
        raise ChannelGarbled("a header that is not JSON") from error
    if not isinstance(header, dict):
        raise ChannelGarbled("a header that is not an object")
    return header


def raw_bytes(tensor: Tensor) -> memoryview:
    if tensor.numel() == 0:
        return memoryview(b"")
    flat = settle_bits(tensor).cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data


def wire_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
