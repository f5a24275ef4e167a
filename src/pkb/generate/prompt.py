"""The text that a model is sent for one problem. It depends on nothing but its settings; no model is called here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkb.errors import UsageError
from pkb.generate.argument_docs import argument_lines, constructor_lines
from pkb.generate.examples import examples
from pkb.generate.outline import outline
from pkb.generate.template import Template
from pkb.hardware.roofline import Hardware
from pkb.problems.problem import Problem
from pkb.screen import Severity, all_rules
from pkb.settings import Track, find_track

PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Wanted:
    """What kernel is asked for."""

    backend: str = "cuda"
    precision: str = "bf16"
    hardware: str | None = "h100_8"
    """A profile of src/pkb/hardware; None says nothing about it."""
    track: str = Track.ANY
    nproc: int | None = None
    """Ranks; None for as many as are usual for the problem."""
    size: str = "paper"
    """Whose shapes are shown."""
    examples: int = 1
    template: Path | None = None

    @property
    def dtype(self) -> str:
        if self.precision not in PRECISIONS:
            raise UsageError(f"unknown precision {self.precision!r}; choose from {', '.join(PRECISIONS)}")
        return PRECISIONS[self.precision]

    def texts(self, problem: Problem) -> Template:
        return Template.of(self.backend, self.template, problem.form)


def prompt_for(problem: Problem, wanted: Wanted, ending: str = "answer") -> str:
    """`ending` is the section that stands in place of `answer`."""
    template = wanted.texts(problem)
    values = _values(problem, wanted, template)
    absent = {"hardware"} if wanted.hardware is None else set()
    absent |= set() if values["examples"] else {"examples"}
    sections = [ending if name == "answer" else name for name in template.parts["sections"] if name not in absent]
    return "\n\n".join(template.filled("text", name, values).strip() for name in sections) + "\n"


def _values(problem: Problem, wanted: Wanted, template: Template) -> dict[str, str]:
    """Everything that a section may name."""
    size, world = problem.size(wanted.size), wanted.nproc or problem.usual_world
    values = {
        "problem": problem.stem,
        "reference": problem.shown(),
        "backend": wanted.backend,
        "backend_title": template.parts["title"],
        "entry": problem.entry,
        "m": str(size.m),
        "n": str(size.n),
        "size": size.name,
        "nproc": str(world),
        "dtype": wanted.dtype,
        "constructor": "\n".join(constructor_lines(problem, size)),
        "arguments": "\n".join(argument_lines(problem, size, wanted.dtype, world)),
        "worlds": ", ".join(map(str, problem.worlds(size))),
        "notes": "\n".join(_notes(problem, template)),
        "track": wanted.track,
        "track_text": template.filled("track", find_track(wanted.track), {}),
        "barred": "\n".join(_barred(find_track(wanted.track), template)),
        "how": template.parts["how"].strip(),
        "library": "\n".join(_library(template)),
        "precision_text": template.filled("precision", wanted.precision, {}),
        "examples": "\n".join(_examples(problem, wanted, template)),
    }
    return values | (_hardware(problem, wanted, world, template) if wanted.hardware else {})


def _notes(problem: Problem, template: Template) -> list[str]:
    named = {"requires": problem.requires, "mutates": problem.mutates, "may_overwrite": problem.may_overwrite}
    notes = [template.filled("notes", note, {"names": "; ".join(names)}) for note, names in named.items() if names]
    return [*filter(None, notes), *([template.filled("notes", "exact", {})] if problem.exact else [])]


def _barred(track: Track, template: Template) -> list[str]:
    """The screen's own rules: what it rejects, and what to do instead."""
    rejecting = [rule for rule in all_rules().values() if rule.severity.get(track) is Severity.REJECT]
    said = [rule for rule in rejecting if rule.name not in template.parts["unsaid"]]
    return [f"- {rule.sentence} (instead: {rule.advice})" for rule in said]


def _library(template: Template) -> list[str]:
    return [template.filled("text", "library", _outlined(_PACKAGE / name)) for name in template.parts["library"]]


def _outlined(path: Path) -> dict[str, str]:
    inside = path.relative_to(_PACKAGE.parent)
    if path.suffix != ".py":
        return {"module": path.name, "language": "cuda", "outline": outline(path)}
    module = ".".join(inside.with_suffix("").parts).removesuffix(".__init__")
    return {"module": module, "language": "python", "outline": outline(path)}


def _examples(problem: Problem, wanted: Wanted, template: Template) -> list[str]:
    return [
        template.filled(
            "text",
            "example",
            {"problem": example.problem.stem, "reference": example.problem.shown(), "kernel": example.kernel},
        )
        for example in examples(template, wanted.backend, problem, wanted.examples)
    ]


def _hardware(problem: Problem, wanted: Wanted, world: int, template: Template) -> dict[str, str]:
    hardware = Hardware.named(str(wanted.hardware))
    costs = [problem.cost(problem.case(wanted.size, wanted.dtype, world, rank)) for rank in range(world)]
    slowest = max(costs, key=lambda cost: max(hardware.times(cost, wanted.dtype).values()))
    times = {f"{part}_us": f"{1e6 * s:.3g}" for part, s in hardware.times(slowest, wanted.dtype).items()}
    facts = "\n".join(_facts(hardware, wanted.dtype, template))
    bound = template.filled("bound", hardware.bound(slowest, wanted.dtype), {})
    return {"hardware_name": hardware.name, "gpu": hardware.gpu, "facts": facts, "bound": bound, **times}


def _facts(hardware: Hardware, dtype: str, template: Template) -> list[str]:
    lines = []
    for fact in template.parts["facts"]:
        value: Any = getattr(hardware, fact, None)
        if value and template.parts["facts"][fact]:
            shown = _in_units(fact, value[dtype] if isinstance(value, dict) else value)
            lines.append(template.filled("facts", fact, {"value": shown, "dtype": dtype}))
    return lines


def _in_units(fact: str, value: float) -> str:
    if fact.endswith("bytes_per_s"):
        return f"{value / 1e9:,.0f} GB/s"
    return f"{value / 1e12:,.0f} TFLOP/s" if fact.startswith("flops") else f"{value:g}"
