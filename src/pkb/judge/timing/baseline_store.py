"""Times of references that are kept: one file for each problem as it was posed, in a folder that names the machine.

<store>/<hardware>/<fingerprint>/<problem>-<size>-<dtype>-w<world>.json        (-published, with such inputs)

They stand in for a new measurement only where every fact of the machine and its software is the same.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkb.base.atomic import write_whole
from pkb.base.paths import home
from pkb.errors import UsageError
from pkb.platforms import Platform
from pkb.protocol.compile_modes import EAGER, mode_of
from pkb.provenance import environment
from pkb.runs import Damage, damage, number_of
from pkb.settings import RIGORS

if TYPE_CHECKING:
    from pkb.judge.setup.setup import Setup

METHOD = 1
"""Of timing: counted up when times taken before can no longer be compared with new ones."""
SCHEMA = 1
_SHORT = 12
_FIGURES = re.compile(r"\[\n[-+eE\d\s.,\[\]]+\]")
"""Nested lists of numbers, which go on one line; a text in JSON has no line breaks."""
_TIMES = {"us", "blocks_us"}
_COMPILED_TIMES = _TIMES | {"eager_us", "compile_s"}


@dataclass(frozen=True)
class Stored:
    """What a file holds; without modes, what one would be about."""

    problem: str
    posed: dict[str, str]
    """size, dtype, world, inputs, and a hash of the problem's source"""
    machine: dict[str, str]
    """Hardware and software: facts that must all be the same."""
    environment: dict[str, Any] = field(default_factory=dict)
    """The rest of what is known about the machine."""
    modes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: times, or why there are none."""
    schema: int = SCHEMA

    @cached_property
    def fingerprint(self) -> str:
        return sha256(json.dumps(self.machine, sort_keys=True).encode()).hexdigest()[:_SHORT]

    @property
    def name(self) -> str:
        posed = self.posed
        drawn = "" if posed["inputs"] == "sound" else f"-{posed['inputs']}"
        return f"{self.problem}-{posed['size']}-{posed['dtype']}-w{posed['world']}{drawn}.json"

    @property
    def cpu(self) -> bool:
        return self.machine["ranks on"] == "cpu"

    def path(self, store: Path) -> Path:
        hardware = re.sub(r"[^\w.]+", "-", self.machine["hardware"]).strip("-")
        return store / hardware / self.fingerprint / self.name

    def differences(self, here: "Stored") -> list[str]:
        """From what is asked for here, in words."""
        pairs = ((self.posed, here.posed), (self.machine, here.machine))
        return [
            f"{name} {stored.get(name, 'unknown')} stored, {asked.get(name, 'unknown')} here"
            for stored, asked in pairs
            for name in dict.fromkeys([*stored, *asked])
            if stored.get(name) != asked.get(name)
        ]

    def lacks(self, modes: Iterable[str], rigor: str) -> list[str]:
        """Those that were not timed, or with less rigor."""
        return [mode for mode in modes if not _rigorous(self.modes.get(mode, {}), rigor)]

    def with_mode(self, mode: str, times: dict[str, Any]) -> "Stored":
        return replace(self, modes=self.modes | {mode: times})

    def save(self, store: Path) -> Path:
        path = self.path(store)
        text = json.dumps(asdict(self) | {"fingerprint": self.fingerprint}, indent=1)
        write_whole(path, _FIGURES.sub(lambda found: "".join(found[0].split()), text) + "\n")
        return path


def default_store() -> Path:
    return home() / "baselines"


def asked_here(setup: "Setup", platform: Platform) -> Stored:
    """What a file about this problem, so posed, on this machine would say, but for the times."""
    problem, facts = setup.problem, setup.facts()
    size = next((name for name, one in problem.sizes.items() if one == setup.size), f"m{setup.size.m}n{setup.size.n}")
    posed = {
        "size": size,
        "dtype": setup.dtype,
        "world": str(setup.world),
        "inputs": facts.get("inputs", "sound"),
        "source": sha256(problem.path.read_bytes()).hexdigest()[:_SHORT],
    }
    return Stored(problem.stem, posed, machine(platform, setup.world), environment(platform))


def machine(platform: Platform, world: int) -> dict[str, str]:
    """What times depend on: hardware, and the software that is not the problem's or ours."""
    facts = environment(platform)
    gpus = facts.get("gpus")
    known = {
        "hardware": f"{facts['cpu']}, {facts['cores']} cores" if gpus is None else next(iter(gpus), "a GPU"),
        # Alone on a GPU, a rank is the same on every platform that has GPUs.
        "ranks on": "one GPU" if gpus is not None and world == 1 else platform.name,
        "driver": facts.get("driver"),
        "CUDA": facts.get("cuda"),
        "torch": facts["torch"],
        "triton": facts["triton"],
        "Python": ".".join(facts["python"].split(".")[:2]),
        "timing method": METHOD,
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def read(path: Path) -> Stored | Damage | None:
    """None when there is none."""
    try:
        return _checked(path, json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return Damage(path, damage(error).replace("not a record", "not stored times"))


def read_all(store: Path, name: str = "*.json") -> tuple[list[Stored], list[Damage]]:
    """Every file of a store, in the problems' order; those that cannot be read are named and left out."""
    paths = sorted(store.glob(f"*/*/{name}"), key=lambda path: (number_of(path.name.partition("-")[0]), path))
    found = [read(path) for path in paths]
    return [one for one in found if isinstance(one, Stored)], [one for one in found if isinstance(one, Damage)]


def reusable(store: Path, here: Stored, baselines: Iterable[str], rigor: str) -> dict[str, dict[str, Any]]:
    """The stored times of these baselines. Raises UsageError, with what differs, where they are not of this machine."""
    found, advice = read(here.path(store)), f"measure with `pkb baseline {here.problem}` and the same options"
    if not isinstance(found, Stored) or found.differences(here):
        raise UsageError(f"{_why_not(store, here)}; {advice}")
    if lacking := found.lacks(baselines, rigor):
        modes = ", ".join(map(mode_of, lacking))
        raise UsageError(f"the stored times of {here.problem} lack {modes} at rigor {rigor}; {advice}")
    return {name: found.modes[name] | {"fingerprint": found.fingerprint} for name in baselines}


def _checked(path: Path, fields: dict[str, Any]) -> Stored:
    """Raises for what did not come from `save`."""
    if fields["schema"] > SCHEMA:
        raise ValueError(f"its schema is {fields['schema']} and this pkb knows {SCHEMA} at most; update pkb")
    fields.pop("fingerprint")
    found = Stored(**fields)
    if (path.parent.name, path.name) != (found.fingerprint, found.name):
        raise ValueError(f"what it says belongs in {found.fingerprint}/{found.name}")
    for mode, times in found.modes.items():
        needed = {"when", "rigor"} | ({"failed"} if "failed" in times else _TIMES if mode == EAGER else _COMPILED_TIMES)
        if lacking := needed - times.keys():
            raise ValueError(f"its mode {mode} has no {', '.join(sorted(lacking))}")
    return found


def _why_not(store: Path, here: Stored) -> str:
    others, damaged = read_all(store, here.name)
    if own := [one for one in damaged if one.path == here.path(store)]:
        return f"stored times cannot be read: {own[0]}"
    if not others:
        return f"no times of {here.name.removesuffix('.json')} are stored in {store}"
    nearest = min((one.differences(here) for one in others), key=len)
    return f"the stored times of {here.problem} do not hold here: {', '.join(nearest)}"


def _rigorous(times: dict[str, Any], rigor: str) -> bool:
    order = list(RIGORS)
    return times.get("rigor") in order and order.index(times["rigor"]) >= order.index(rigor)
