"""A candidate that takes over its rank's end of the judge's socket, and answers one kind of order in a bad manner.

The judge runs the source of this module as a candidate, with the order and the manner set. All other orders are
answered well, by the rank's own code.
"""

import gc
import json
import os
import socket
import struct
import time
from pathlib import Path
from typing import Any

ORDER = ""
"""The class of the order that is answered badly."""
MANNER = ""
TOO_LATE_S = 30.0
QUICK = (
    "another_kind",
    "other_fields",
    "empty",
    "no_json",
    "deep",
    "huge",
    "cut_off",
    "exit",
    "stale",
    "twice",
    "ahead",
)
SLOW = ("never", "late", "drip")
"""Manners of answering: quick ones, and those that take until a deadline."""

_LENGTH = struct.Struct("!I")


def make_candidate(order: str, manner: str, more: str = "") -> bytes:
    """Return the source of a candidate that answers these orders in this manner."""
    source = Path(__file__).read_text()
    own = f'ORDER, MANNER = "{order}", "{manner}"\n{more}\ntake_over()\n'
    return (source + "\n\n" + own).encode()


def solution(tensor: Any) -> Any:
    return tensor.clone()


def take_over() -> None:
    """Put a channel of our own in the place of the rank's."""
    from pkb.protocol.channel import Channel
    from pkb.rank.rank import Rank

    class HostileChannel(Channel):
        order: dict[str, Any]
        """The last order that came."""
        numbers: list[int]
        """The numbers of all orders so far."""

        def receive(self, *args: Any) -> dict[str, Any]:
            self.order = super().receive(*args)
            self.numbers = [*vars(self).get("numbers", ()), self.order.get("order", 0)]
            return self.order

        def send(self, header: dict[str, Any], tensors: Any = (), *args: Any, **rest: Any) -> None:
            # The order that was under way when this channel took over is the one that loads this file.
            kind = vars(self).get("order", {"kind": "LoadSolution"})["kind"]
            if kind not in (ORDER, "BuildExtensions" if ORDER == "LoadSolution" else ORDER):
                super().send(header, tensors, *args, **rest)
                return
            for answer in answer_badly(self.sock, header, vars(self).get("numbers", [0])):
                super().send(answer, tensors, *args, **rest)

    rank = next(found for found in gc.get_objects() if isinstance(found, Rank))
    rank.channel = HostileChannel(rank.channel.sock)


def answer_badly(sock: socket.socket, header: dict[str, Any], numbers: list[int]) -> list[dict[str, Any]]:
    """Misbehave; return the answers that are sent afterwards as if nothing had happened."""
    frame = json.dumps(header).encode()
    match MANNER:
        case "another_kind":
            return [{**header, "kind": "Verdict", "verdict": "CORRECT"}]
        case "other_fields":
            return [{**header, "verdict": "CORRECT", "\ud800": {"\x1b": [1e300]}}]
        case "empty":
            return [{}]
        case "stale":
            return [{**header, "order": numbers[0] ^ 1}]
        case "twice":
            return [header, header]
        case "ahead":
            return [header, {"kind": "Answer", "order": 0}, {"kind": "Answer", "order": 1}]
        case "no_json":
            sock.sendall(_LENGTH.pack(9) + b"CORRECT\xff\x00")
        case "deep":
            sock.sendall(_LENGTH.pack(1 << 20) + b"[" * (1 << 20))
        case "huge":
            sock.sendall(_LENGTH.pack(0xFFFFFFFF) + b"{}")
        case "cut_off":
            sock.sendall(_LENGTH.pack(len(frame)) + frame[: len(frame) // 2])
            sock.shutdown(socket.SHUT_RDWR)
        case "exit":
            os._exit(0)
        case "drip":
            for byte in _LENGTH.pack(1 << 16) + b"{" + b" " * (1 << 16):
                sock.sendall(bytes([byte]))
                time.sleep(0.05)
        case "never" | "late":
            time.sleep(TOO_LATE_S if MANNER == "late" else 10 * TOO_LATE_S)
            return [header]
    time.sleep(10 * TOO_LATE_S)
    return []
