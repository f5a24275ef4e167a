"""The gate lets nothing in but answers within their bounds, whatever arrives, at no cost that its sender chooses."""

import copy
import json
import math
import random
import socket
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pkb.base.schema import AtMost, Between, Clean, OneOf, PlainTree, SchemaError, dump, parse
from pkb.base.tensors import COMPARABLE
from pkb.judge.worlds import gate
from pkb.protocol import messages as m
from pkb.protocol.channel import Channel, ChannelGarbled

ANSWERS = sorted((m.Answer, *m.Answer.__subclasses__()), key=lambda kind: kind.__name__)
MUTANTS, OTHERS, AT_ONCE = 12_000, 300, 20
"""Messages: mutants of good answers, and headers of any JSON; and the number of mutants that are tried together."""
MOST_S = 1.0
"""Seconds that one message may cost, on a busy machine."""
NUMBER = 77

LEAF = m.LeafReport("Tensor", [2, 3], "float32", "cpu", [3, 1], ["tensor"], [0])
FIXED = {
    m.LeafReport: dump(LEAF),
    m.ResultReport: dump(
        m.ResultReport([{"tensor": 0}, {"dict": {"a": {"value": 1.5}, "b": {"other": "Odd"}}}], [LEAF], ["x"])
    ),
}
"""Good values of classes whose fields depend on each other."""
NOT_SHOWN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def split_bounds(hint: Any) -> tuple[Any, list[Any]]:
    return (get_args(hint)[0], list(get_args(hint)[1:])) if get_origin(hint) is Annotated else (hint, [])


def list_hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: hints[one.name] for one in fields(kind)}


# Bounds are declared


def find_unbounded(hint: Any, place: str) -> Iterator[str]:
    """Yield the places in a type that may hold text, a number or items without a bound."""
    plain, bounds = split_bounds(hint)
    kinds = {type(bound) for bound in bounds}
    if PlainTree in kinds:
        return
    if is_dataclass(plain):
        for name, inner in list_hints(plain).items():
            yield from find_unbounded(inner, f"{place}.{name}")
    elif plain in (int, float, str):
        if not kinds & ({Clean, OneOf} if plain is str else {Between}):
            yield place
    elif get_origin(plain) in (Union, types.UnionType) or (get_origin(plain) is tuple and ... not in get_args(plain)):
        for k, inner in enumerate(get_args(plain)):
            yield from find_unbounded(inner, f"{place}[{k}]")
    elif get_origin(plain) in (list, tuple, dict):
        if AtMost not in kinds:
            yield place
        for inner in get_args(plain):
            yield from find_unbounded(inner, f"{place}[]")
    elif plain not in (bool, types.NoneType):
        yield place


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_every_field_of_every_answer_has_a_bound(kind: type) -> None:
    assert list(find_unbounded(kind, kind.__name__)) == []


def test_a_field_without_a_bound_is_noticed() -> None:
    @dataclass(frozen=True)
    class Careless:
        text: str
        number: float | None
        items: list[Annotated[int, Between(0, 1)]]
        anything: Any
        pairs: Annotated[dict[str, int], AtMost(3)]

    found = {place.partition("[")[0] for place in find_unbounded(Careless, "c")}
    assert found == {"c.text", "c.number", "c.items", "c.anything", "c.pairs"}


# Messages, good and bad


def make_good(hint: Any) -> Any:
    """Return a JSON value that satisfies a type and its bounds."""
    plain, bounds = split_bounds(hint)
    if plain in FIXED:
        return copy.deepcopy(FIXED[plain])
    if is_dataclass(plain):
        return {name: make_good(inner) for name, inner in list_hints(plain).items()}
    if plain in (int, float):
        low = next(bound.low for bound in bounds if isinstance(bound, Between))
        return plain(max(low, 2))
    if plain is str:
        return next((min(bound.values) for bound in bounds if isinstance(bound, OneOf)), "plain words")
    if any(isinstance(bound, PlainTree) for bound in bounds):
        return {"threads": ["a"], "pads": {"raised": 0, "epochs": False}}
    inner = get_args(plain)
    if get_origin(plain) is dict:
        return {str(make_good(inner[0])): make_good(inner[1])}
    if get_origin(plain) is tuple:
        return [make_good(one) for one in inner]
    if get_origin(plain) is list:
        return [make_good(inner[0])] * 2
    return make_good(inner[0]) if inner else False


def make_header(kind: type) -> dict[str, Any]:
    return {"kind": kind.__name__, "order": NUMBER, **make_good(kind)}


DEEP: Any = 1
for _ in range(40):
    DEEP = [DEEP]

HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1, -0.0, 0.1, 0.4999, 1e-320, 5e-324, 1e300, 10**18, 2**63, -(2**63) - 1, 10**30, 1e22),
    *(math.nan, math.inf, -math.inf, "", "quint8", "qint32", "float32", "complex32", "bits8", "__class__"),
    *("\ud800", "\x1b[2K\rCORRECT", "a\nb", "\u202egnorw", "\u2028", "\x00", "x" * 9000, "[bold red]x[/]", "1", "-1"),
    *([], {}, [[]], [{}], {"tensor": 0}, {"tensor": 10**9}, {"dict": {}}, {"value": "\ud83d"}, DEEP, [0] * 2000),
    *([-1], [2**40, 2**40], [0, 2**41, 2**41], [1] * 65, {str(k): k for k in range(300)}, {"\x01": 1, "\x02": 2}),
]


def list_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths to all parts of a JSON value."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from list_places(one, (*path, key))


def mutate(header: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return a copy with one to three parts replaced, removed, added or repeated."""
    header = copy.deepcopy(header)
    for _ in range(draw.choice((1, 1, 2, 3))):
        path = draw.choice([*islice(list_places(header), 300)] or [("kind",)])
        owner: Any = header
        for key in path[:-1]:
            owner = owner[key]
        change = draw.randrange(5)
        if change == 0 and len(header) > 1:
            del owner[path[-1]]
        elif change == 1 and isinstance(owner, dict):
            owner[draw.choice(("more", "\ud800", "kind", "1", "x" * 500))] = copy.deepcopy(draw.choice(HOSTILE))
        elif change == 2 and isinstance(owner, list) and len(owner) < 100:
            owner *= draw.choice((2, 40, 1500))
        else:
            owner[path[-1]] = copy.deepcopy(draw.choice(HOSTILE))
    return header


def spoil(frame: bytes, draw: random.Random) -> bytes:
    """Return the bytes of a frame cut off, flipped, or with others put in."""
    place, change = draw.randrange(len(frame)), draw.randrange(5)
    inserts = (
        b"[" * 5000,
        b"{" * 99,
        b'"',
        b'"kind":',
        b"\xff\xfe",
        b"9" * 5000,
        b"1e999",
        b"NaN",
        b"\\",
        b"\\ud800",
        b",",
    )
    match change:
        case 0:
            return frame[:place]
        case 1:
            return frame[:place] + bytes([draw.randrange(256)]) + frame[place + 1 :]
        case 2:
            return frame[:place] + draw.choice(inserts) + frame[place:]
        case 3:
            return frame[:place] + draw.randbytes(8) + frame[place:]
        case _:
            return frame * 2


def check_value(value: Any, depth: int = 0) -> None:
    """Fail unless a value, and all that it holds, is bounded and printable; by rules of this test's own."""
    assert depth < 60
    if is_dataclass(value):
        for one in fields(value):
            check_value(getattr(value, one.name), depth + 1)
    elif isinstance(value, dict):
        assert len(value) <= 1 << 15
        for key, one in value.items():
            check_value(key, depth + 1)
            check_value(one, depth + 1)
    elif isinstance(value, list | tuple):
        assert len(value) <= 1 << 15
        for one in value:
            check_value(one, depth + 1)
    elif isinstance(value, str):
        assert len(value) <= 2000
        assert value.isprintable()
        assert not value.splitlines()[1:]
        value.encode()
    elif isinstance(value, int):
        assert abs(value) <= 2**63
    else:
        assert value is None or (isinstance(value, float) and math.isfinite(value))


def check_meaning(answer: m.Answer) -> None:
    """Fail if the judge could stumble over an answer's numbers."""
    match answer:
        case m.BlockTimes():
            assert all(round(ns / 1000, 3) > 0 and 1 / round(ns / 1000, 3) < 1e4 for ns in answer.ns)
            assert answer.host_s >= 0
        case m.CallResults():
            for result in answer.results:
                for leaf in result.leaves:
                    dtype = getattr(torch, leaf.dtype)
                    assert dtype in COMPARABLE
                    assert min(leaf.shape, default=0) >= 0
                    assert leaf.strides is None or len(leaf.strides) == len(leaf.shape)
            assert sum(leaf.nbytes for result in answer.results for leaf in result.leaves) <= 1 << 42
        case m.Usage():
            assert all(min(pair) >= 0 for pair in answer.seconds.values())


def pass_gate(kind: type[m.Answer], frame: bytes) -> str:
    """Let a frame through the gate; return what became of it. Any other exception fails the test, and so does time."""
    start = time.process_time()
    try:
        answer = gate.parse_answer(kind, gate.read_header(frame), NUMBER)
    except (ChannelGarbled, SchemaError) as error:
        outcome = type(error).__name__
    else:
        outcome = "accepted"
        check_value(answer)
        check_meaning(answer)
        assert parse(type(answer), json.loads(json.dumps(dump(answer), allow_nan=False))) == answer
    assert time.process_time() - start < MOST_S
    return outcome


QUIET: dict[str, Any] = {
    "derandomize": True,
    "database": None,
    "deadline": None,
    "suppress_health_check": [*HealthCheck],
}


def run_many(count: int, *strategies: Any, body: Callable[..., list[str]]) -> Counter[str]:
    """Have hypothesis draw `count` times; count the outcomes that the body returns."""
    outcomes: Counter[str] = Counter()

    @settings(max_examples=count, **QUIET)
    @given(st.tuples(*strategies))
    def run(drawn: tuple[Any, ...]) -> None:
        outcomes.update(body(*drawn))

    run()
    return outcomes


def test_mutants_of_good_answers(capsys: pytest.CaptureFixture[str]) -> None:
    headers = {kind: make_header(kind) for kind in ANSWERS}
    for kind, header in headers.items():
        assert pass_gate(kind, json.dumps(header).encode()) == "accepted", kind

    def try_mutant(kind: type[m.Answer], seed: int, bytewise: bool) -> str:
        draw = random.Random(seed)
        frame = json.dumps(headers[kind] if bytewise and seed % 2 else mutate(headers[kind], draw)).encode()
        return pass_gate(kind, spoil(frame, draw) if bytewise else frame)

    def try_several(kind: type[m.Answer], seed: int, bytewise: bool) -> list[str]:
        # A draw of hypothesis takes longer than a mutant.
        return [try_mutant(kind, seed + k, bytewise) for k in range(AT_ONCE)]

    strategies = (st.sampled_from(ANSWERS), st.integers(0, 2**62), st.booleans())
    outcomes = run_many(MUTANTS // AT_ONCE, *strategies, body=try_several)
    with capsys.disabled():
        print(f"\nthe gate: {outcomes.total()} mutants: {dict(outcomes)}")
    assert outcomes.total() >= MUTANTS
    assert min(outcomes[one] for one in ("accepted", "SchemaError", "ChannelGarbled")) > 200


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()))
ANY_JSON = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def test_headers_of_any_json(capsys: pytest.CaptureFixture[str]) -> None:
    def try_fields(kind: type[m.Answer], values: list[Any]) -> list[str]:
        names = list_hints(kind)
        header = {"kind": kind.__name__, "order": NUMBER, **dict(zip(names, values, strict=False))}
        return [pass_gate(kind, json.dumps(header).encode())]

    outcomes = run_many(OTHERS, st.sampled_from(ANSWERS), st.lists(ANY_JSON, max_size=4), body=try_fields)
    with capsys.disabled():
        print(f"\nthe gate: {outcomes.total()} headers of any JSON: {dict(outcomes)}")


@pytest.mark.parametrize(
    "frame",
    [
        b"[" * (4 << 20),
        b'{"a":' * (1 << 19),
        b"[" + b"[]," * (1 << 20) + b"[]]",
        b"[" + b"1," * (1 << 20) + b"1]",
        b'{"a": ' + b"9" * (4 << 20) + b"}",
        b'{"a": 1' + b"0" * 4000 + b"." + b"0" * 4000 + b"e-9999999999}",
        b'"' + b'\\"' * (1 << 20),
        b'"' * (4 << 20),
        b"\\" * (4 << 20),
        b'{"kind": "Answer", "kind": "Ready"}',
        b'{"kind": "Answer", "order": NaN}',
        b'{"kind": "Answer", "order": 1e400}',
        b'{"kind": "Answer", "order": -Infinity}',
        b'{"a": "' + b"x" * (4 << 20) + b'"}',
        b"\xff\xfe{\x00}\x00",
        b"{}" + b"]" * 1000 + b"[" * 2000,
        b"null",
        b"",
    ],
    ids=lambda frame: repr(frame[:12]) + str(len(frame)),
)
def test_costly_and_odd_frames_are_refused_quickly(frame: bytes) -> None:
    start = time.process_time()
    with pytest.raises(ChannelGarbled):
        gate.read_header(frame)
    assert time.process_time() - start < MOST_S


def test_long_text_with_brackets_is_no_structure() -> None:
    header = {"kind": "ErrorReport", "order": NUMBER, "type": "E", "message": '[{"' * 600 + "\\"}
    answer = gate.parse_answer(m.Answer, gate.read_header(json.dumps(header).encode()), NUMBER)
    assert isinstance(answer, m.ErrorReport)
    assert len(answer.message) == 1801


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"kind": "Answer", "order": 1}, "another one"),
        ({"kind": "Answer"}, "to no order"),
        ({"kind": "Ready", "order": NUMBER}, "another kind than Answer"),
        ({"kind": "Answer", "order": NUMBER, "x": 1}, "unknown field 'x'"),
    ],
)
def test_answers_to_other_orders_and_of_other_kinds_are_refused(header: dict[str, Any], says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        gate.parse_answer(m.Answer, header, NUMBER)


@pytest.mark.parametrize("ns", [0.0, -0.0, 0.1, 0.4999, -5.0, 1e17, True, "1"])
def test_times_that_would_be_rounded_to_nothing_are_refused(ns: Any) -> None:
    header = {**make_header(m.BlockTimes), "ns": [5.0, ns]}
    with pytest.raises(SchemaError):
        gate.parse_answer(m.BlockTimes, header, NUMBER)


def test_tensors_are_received_in_every_comparable_dtype_and_in_no_other() -> None:
    ours, theirs = map(Channel, socket.socketpair())
    for dtype in COMPARABLE:
        theirs.send({}, [torch.ones(3).to(dtype)])
        assert gate.receive_header(ours, math.inf) == {}
        (tensor,) = gate.receive_tensors(ours, [((3,), dtype)], math.inf)
        assert (tensor.dtype, tensor.shape) == (dtype, (3,))
    for shape, dtype in (((3,), torch.quint8), ((-1,), torch.float32), ((1 << 41,), torch.int8)):
        with pytest.raises(SchemaError):
            gate.receive_tensors(ours, [(shape, dtype)] * 3, math.inf)
    ours.close()
    theirs.close()


def test_forms_that_do_not_fit_their_tensors_are_refused() -> None:
    for form in ([], [{"tensor": 1}], [{"tensor": 0}] * 2, {"dict": {}}, DEEP):
        header = {"kind": "CallResults", "order": NUMBER, "results": [{**FIXED[m.ResultReport], "form": form}]}
        with pytest.raises(SchemaError):
            gate.parse_answer(m.CallResults, header, NUMBER)
