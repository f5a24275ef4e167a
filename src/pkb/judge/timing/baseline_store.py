"""Stored times of references: one file for each problem as it was posed, in a folder that names the machine.

<store>/<hardware>/<fingerprint>/<problem>-<size>-<dtype>-w<world>.json        (-published, with published inputs)

Stored times replace a new measurement only where every fact of the machine and its software is the same.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pkb.base.atomic import write_whole
from pkb.base.foreign_files import RECORD_BYTES, make_own_folder, parse_json, read_own_file
from pkb.base.paths import find_cache_folder
from pkb.base.printable import clean_line
from pkb.base.schema import dump, parse
from pkb.errors import UsageError
from pkb.platforms import Platform
from pkb.protocol.compile_modes import EAGER, mode_of
from pkb.provenance import describe_environment
from pkb.record import Environment, Facts, Figure, Interval, Microseconds, Spans
from pkb.runs import Damage, describe_damage, find_problem_number
from pkb.settings import RIGORS

if TYPE_CHECKING:
    from pkb.judge.setup.setup import Setup

METHOD = 1
"""The version of the timing method: counted up when earlier times can no longer be compared with new ones."""
SCHEMA = 2
_SHORT = 12
_FIGURES = re.compile(r"\[\n[-+eE\d\s.,\[\]]+\]")
"""Matches nested lists of numbers, which go on one line; a text in JSON has no line breaks."""
_TIMES = {"us", "blocks_us"}
_COMPILED_TIMES = _TIMES | {"eager_us", "compile_s"}
_KINDS: dict[str, Any] = {
    "failed": str,
    "when": str,
    "rigor": str,
    "us": Microseconds,
    "eager_us": Microseconds,
    "compile_s": Figure,
    "interval": Interval,
    "blocks_us": Spans,
    "eager_blocks_us": Spans,
}
"""The types of a mode's fields; all others are only kept."""
_WORLD = re.compile(r"[1-9]\d{0,3}", re.ASCII)


@dataclass(frozen=True)
class StoredTimes:
    """The content of a file; without modes, what a file would be about."""

    problem: str
    posed: dict[str, str]
    """How the problem was posed: size, dtype, world, inputs, and a hash of its source."""
    machine: dict[str, str]
    """The facts about hardware and software that must all be the same where these times are reused."""
    environment: Environment = field(default_factory=Environment)
    """What else is known about the machine."""
    modes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By mode: the times, or why there are none."""
    schema: int = SCHEMA

    @cached_property
    def fingerprint(self) -> str:
        return sha256(json.dumps(self.machine, sort_keys=True).encode()).hexdigest()[:_SHORT]

    @property
    def name(self) -> str:
        posed = self.posed
        drawn = "" if posed["inputs"] == "sound" else f"-{posed['inputs']}"
        # The name of a size comes from a problem's file.
        size = re.sub(r"[^\w.-]+", "-", posed["size"])
        return f"{self.problem}-{size}-{posed['dtype']}-w{posed['world']}{drawn}.json"

    def find_path(self, store: Path) -> Path:
        hardware = re.sub(r"[^\w.]+", "-", self.machine["hardware"]).strip("-")
        return store / hardware / self.fingerprint / self.name

    def list_differences(self, here: "StoredTimes") -> list[str]:
        """Return in words how these times differ from what is wanted here."""
        pairs = ((self.posed, here.posed), (self.machine, here.machine))
        return [
            f"{name} {stored.get(name, 'unknown')} stored, {asked.get(name, 'unknown')} here"
            for stored, asked in pairs
            for name in dict.fromkeys([*stored, *asked])
            if stored.get(name) != asked.get(name)
        ]

    def list_missing(self, modes: Iterable[str], rigor: str) -> list[str]:
        """Return the modes that were not timed, or with less rigor."""
        return [mode for mode in modes if not _is_rigorous(self.modes.get(mode, {}), rigor)]

    def add_mode(self, mode: str, times: dict[str, Any]) -> "StoredTimes":
        """Return these times and those of another mode."""
        return replace(self, modes=self.modes | {mode: times})

    def save(self, store: Path) -> Path:
        """Write the file, and return its path."""
        path = self.find_path(store)
        text = json.dumps(dump(self) | {"fingerprint": self.fingerprint}, indent=1)
        make_own_folder(path.parent)
        write_whole(path, _FIGURES.sub(lambda found: "".join(found[0].split()), text) + "\n")
        return path


def find_default_store() -> Path:
    return find_cache_folder() / "baselines"


def describe_times(setup: "Setup", platform: Platform) -> StoredTimes:
    """Return what a file about this setup on this machine would say, without any times."""
    problem, facts = setup.problem, setup.facts()
    size = next((name for name, one in problem.sizes.items() if one == setup.size), f"m{setup.size.m}n{setup.size.n}")
    posed = {
        "size": size,
        "dtype": setup.dtype,
        "world": str(setup.world),
        "inputs": facts.get("inputs", "sound"),
        "source": sha256(b"".join(file.read_bytes() for file in problem.list_files())).hexdigest()[:_SHORT],
    }
    return StoredTimes(problem.stem, posed, describe_machine(platform, setup.world), describe_environment(platform))


def describe_machine(platform: Platform, world: int) -> dict[str, str]:
    """Return what times depend on: hardware, and the software that is neither the problem nor pkb itself."""
    facts = describe_environment(platform)
    known = {
        "hardware": f"{facts.cpu}, {facts.cores} cores" if facts.gpus is None else next(iter(facts.gpus), "a GPU"),
        # A single rank runs the same on every platform that has GPUs.
        "ranks on": "one GPU" if facts.gpus is not None and world == 1 else platform.name,
        "driver": facts.driver,
        "CUDA": facts.cuda,
        "torch": facts.torch,
        "triton": facts.triton,
        "Python": ".".join(facts.python.split(".")[:2]),
        "timing method": METHOD,
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def read_times(path: Path) -> StoredTimes | Damage | None:
    """Return the content of a file; None where there is no file."""
    try:
        return _parse_times(path, parse_json(read_own_file(path, RECORD_BYTES)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, RecursionError) as error:
        return Damage(path, describe_damage(error).replace("not a record", "not stored times"))


def read_store(store: Path, name: str = "*.json") -> tuple[list[StoredTimes], list[Damage]]:
    """Return all files of a store in the problems' order, and those that cannot be read."""
    paths = sorted(store.glob(f"*/*/{name}"), key=lambda path: (find_problem_number(path.name.partition("-")[0]), path))
    found = [read_times(path) for path in paths]
    return [one for one in found if isinstance(one, StoredTimes)], [one for one in found if isinstance(one, Damage)]


def find_baselines(store: Path, here: StoredTimes, baselines: Iterable[str], rigor: str) -> dict[str, dict[str, Any]]:
    """Return the stored times of these baselines. Raises UsageError, which names what differs from this machine."""
    found, advice = (
        read_times(here.find_path(store)),
        f"measure with `pkb baseline {here.problem}` and the same options",
    )
    if not isinstance(found, StoredTimes) or found.list_differences(here):
        raise UsageError(f"{_explain_refusal(store, here)}; {advice}")
    if lacking := found.list_missing(baselines, rigor):
        modes = ", ".join(map(mode_of, lacking))
        raise UsageError(f"the stored times of {here.problem} lack {modes} at rigor {rigor}; {advice}")
    return {name: found.modes[name] | {"fingerprint": found.fingerprint} for name in baselines}


def _parse_times(path: Path, fields: Any) -> StoredTimes:
    """Return the times in a file's fields. Raises ValueError for what did not come from `save`."""
    if not isinstance(fields, dict):
        raise ValueError("not stored times: not an object")
    if fields.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {fields.get('schema')} and this pkb reads {SCHEMA}; time the reference again")
    found = parse(StoredTimes, {name: value for name, value in fields.items() if name != "fingerprint"})
    if not _WORLD.fullmatch(found.posed["world"]):
        raise ValueError("its posed.world is no number of ranks")
    if "hardware" not in found.machine:
        raise ValueError("its machine has no 'hardware'")
    if (path.parent.name, path.name) != (found.fingerprint, found.name):
        raise ValueError(f"its content belongs in {found.fingerprint}/{found.name}")
    for mode, times in found.modes.items():
        needed = {"when", "rigor"} | ({"failed"} if "failed" in times else _TIMES if mode == EAGER else _COMPILED_TIMES)
        if lacking := needed - times.keys():
            raise ValueError(f"its mode {clean_line(mode, 80)} has no {', '.join(sorted(lacking))}")
        _check_mode(mode, times)
    return found


def _check_mode(mode: str, times: dict[str, Any]) -> None:
    """Raise ValueError, which names the field, where a mode's times have another form."""
    place = f"modes[{clean_line(mode, 80)!r}]"
    for name, kind in _KINDS.items():
        if name in times:
            parse(kind, times[name], f"{place}.{name}")
    if not times.get("blocks_us", [0]):
        raise ValueError(f"{place}.blocks_us is empty")
    parse(cast(Any, Facts), {name: value for name, value in times.items() if name not in _KINDS}, place)


def _explain_refusal(store: Path, here: StoredTimes) -> str:
    others, damaged = read_store(store, here.name)
    if own := [one for one in damaged if one.path == here.find_path(store)]:
        return f"stored times cannot be read: {own[0]}"
    if not others:
        return f"no times of {here.name.removesuffix('.json')} are stored in {store}"
    nearest = min((one.list_differences(here) for one in others), key=len)
    return f"the stored times of {here.problem} do not hold here: {', '.join(nearest)}"


def _is_rigorous(times: dict[str, Any], rigor: str) -> bool:
    order = list(RIGORS)
    return times.get("rigor") in order and order.index(times["rigor"]) >= order.index(rigor)
