"""Dataclasses that cross a border: dumped as JSON, parsed strictly."""

import json
import math
import socket
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import pytest

from pkb.base.schema import AtMost, Between, Clean, OneOf, PlainTree, Product, SchemaError, dump, parse
from pkb.engine import Job
from pkb.nursery.server import NurseryServer
from pkb.protocol import messages as m
from pkb.protocol.channel import Channel
from pkb.rank.builder import Builder
from pkb.rank.rank import HANDLERS
from pkb.settings import RIGORS, JudgementSettings, ProblemSettings, Tolerance, Track


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    count: int
    share: float = 0.5


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner | None = None
    pairs: list[tuple[int, str]] = field(default_factory=list)
    by_rank: dict[int, float] = field(default_factory=dict)
    colour: Colour = Colour.RED
    anything: Any = None


FULL = Outer("x", Inner(2, 1.0), [(1, "a")], {3: 0.25}, Colour.RED, [{"deep": None}])


def test_what_is_dumped_is_parsed_again() -> None:
    assert parse(Outer, json.loads(json.dumps(dump(FULL)))) == FULL
    assert parse(Outer, {"name": "x"}) == Outer("x")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": 7}, "name is no str"),
        ({"more": 1}, "unknown field 'more'"),
        ({"inner": {"share": 0.5}}, "inner has no 'count'"),
        ({"pairs": [[1]]}, r"pairs\[0\] has 1 items, not 2"),
        ({"pairs": [[True, "a"]]}, r"pairs\[0\]\[0\] is no int"),
        ({"by_rank": {"x": 1.0}}, "has the key 'x'"),
        ({"by_rank": {"1": float("inf")}}, "is no float"),
        ({"by_rank": {"1": float("nan")}}, "is no float"),
        ({"by_rank": {"1": 10**400}}, "is no float"),
        ({"by_rank": {"1": True}}, "is no float"),
        ({"colour": "blue"}, "not one of red"),
    ],
)
def test_anything_else_is_refused_with_its_place(change: dict[str, Any], says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        parse(Outer, {"name": "x"} | change)


def test_missing_fields_and_other_things_are_refused() -> None:
    for value in ({}, [], None, "text"):
        with pytest.raises(SchemaError):
            parse(Outer, value)


def test_every_order_has_a_handler_in_a_rank_or_in_the_nursery() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        nursery = NurseryServer(Channel(ours), m.NurserySettings({}, [], [], False, [], []))
    assert Builder.build_extensions in HANDLERS.values()
    in_the_nursery = {*nursery._handlers}
    assert {*HANDLERS}.isdisjoint(in_the_nursery)
    assert {*HANDLERS, *in_the_nursery, m.Leave, m.NurserySettings} == {*m.ORDERS.values()}


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(SchemaError, match="unknown order"):
        m.decode_order({"kind": "GiveMeTheSeeds"})


def test_a_job_survives_json() -> None:
    asked = JudgementSettings(Track.SCRATCH, Tolerance(0.1, 0.2), rigor=RIGORS["paper"], baselines=("compile-default",))
    job = Job(
        "parallel", "1_allreduce", "def solution(x):\n    return x  # \udcff\n", posed=ProblemSettings(4), asked=asked
    )
    again = Job.from_json(job.to_json())
    assert again == job
    assert again.asked.track is Track.SCRATCH


Small = Annotated[int, Between(0, 9)]


@dataclass(frozen=True)
class Bounded:
    numbers: Annotated[list[Small], AtMost(3)]
    text: Annotated[str, Clean(8)] = ""
    name: Annotated[str, OneOf(frozenset({"a", "b"}))] = "a"
    sizes: Annotated[list[Small], AtMost(9), Product(20)] = field(default_factory=list)
    tree: Annotated[Any, PlainTree(depth=2, items=6, length=8)] = None
    by_number: Annotated[dict[Small, Small], AtMost(2)] = field(default_factory=dict)


def test_declared_bounds_are_checked_and_text_is_cleaned() -> None:
    good = {"numbers": [0, 9], "text": "two\nlines\x1b", "sizes": [4, 0, 5], "tree": {"k\r": ["\ud800", 1, None]}}
    parsed = parse(Bounded, good | {"by_number": {"3": 4}})
    assert parsed == Bounded([0, 9], "two l...", "a", [4, 0, 5], {"k ": ["?", 1, None]}, {3: 4})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"numbers": [10]}, r"numbers\[0\] is not between 0 and 9"),
        ({"numbers": [True]}, "is no int"),
        ({"numbers": [0] * 4}, "numbers has 4 items, more than 3"),
        ({"name": "c"}, "name is none of the 2 values"),
        ({"name": ["a"]}, "name is no str"),
        ({"sizes": [7, 0, 3]}, "sizes has a product above 20"),
        ({"tree": [[[[]]]]}, "tree has more than 2 levels or 6 parts"),
        ({"tree": [0] * 6}, "tree has more than"),
        ({"tree": math.inf}, "out of range"),
        ({"tree": 2**70}, "out of range"),
        ({"tree": {"\x01": 1, "\x02": 2}}, "keys that look alike"),
        ({"by_number": {"10": 1}}, "has the key '10'"),
        ({"by_number": {" 1": 1}}, "has the key ' 1'"),
        ({"by_number": {"9" * 5000: 1}}, "has the key '999"),
        ({"by_number": {"1": 1, "01": 2}}, "keys that look alike"),
    ],
)
def test_what_is_out_of_bounds_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        parse(Bounded, {"numbers": []} | change)
