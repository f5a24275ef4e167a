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

Message = dict[str, Any]

_LENGTH = struct.Struct("!I")
_HEADER_LIMIT = 16 << 20
_MOST_FDS = 128


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

    def send(self, header: Message, tensors: Sequence[Tensor] = (), fds: Sequence[int] = ()) -> None:
        body = json.dumps(header).encode()
        frame = _LENGTH.pack(len(body)) + body
        self.sock.settimeout(None)
        try:
            sent = socket.send_fds(self.sock, [frame], fds) if fds else 0
            self.sock.sendall(frame[sent:])
            for tensor in tensors:
                self.sock.sendall(raw_bytes(tensor))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ChannelClosed from error

    def receive(self, deadline: float = math.inf) -> Message:
        return self._header(self._exactly(_LENGTH.size, deadline), deadline)

    def receive_with_fds(self) -> tuple[Message, list[int]]:
        try:
            start, fds, _, _ = socket.recv_fds(self.sock, _LENGTH.size, _MOST_FDS)
        except ConnectionResetError as error:
            # Of a peer that went away without having read all that it was sent.
            raise ChannelClosed from error
        if not start:
            raise ChannelClosed
        rest = self._exactly(_LENGTH.size - len(start), math.inf)
        return self._header(start + rest, math.inf), list(fds)

    def receive_tensor(self, shape: Sequence[int], dtype: torch.dtype, deadline: float) -> Tensor:
        count = math.prod(shape) * dtype.itemsize
        if count == 0:
            return torch.empty(tuple(shape), dtype=dtype)
        return torch.frombuffer(self._exactly(count, deadline), dtype=dtype).reshape(tuple(shape))

    def _header(self, start: bytes | bytearray, deadline: float) -> Message:
        (length,) = _LENGTH.unpack(start)
        if length > _HEADER_LIMIT:
            raise ChannelGarbled(f"a header of {length} bytes")
        try:
            header = json.loads(self._exactly(length, deadline))
        except (ValueError, RecursionError) as error:
            raise ChannelGarbled("a header that is not JSON") from error
        if not isinstance(header, dict):
            raise ChannelGarbled("a header that is not an object")
        return header

    def _exactly(self, count: int, deadline: float) -> bytearray:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            got = self._some(view, deadline)
            view = view[got:]
        return buffer

    def _some(self, view: memoryview, deadline: float) -> int:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(None if math.isinf(left) else left)
        try:
            got = self.sock.recv_into(view)
        except ConnectionResetError:
            got = 0
        if not got:
            raise ChannelClosed
        return got


def raw_bytes(tensor: Tensor) -> memoryview:
    if tensor.numel() == 0:
        return memoryview(b"")
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data


def wire_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
