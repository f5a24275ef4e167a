"""Writes the prompt for one problem. The text depends only on the request; no model is called here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkb.generate.argument_docs import describe_arguments, describe_constructor
from pkb.generate.examples import choose_examples
from pkb.generate.outline import outline
from pkb.generate.template import Template
from pkb.hardware.roofline import Hardware
from pkb.problems.problem import Problem
from pkb.problems.size import find_dtype_name
from pkb.screen import Severity, load_rules
from pkb.settings import Track, find_track

_PRECISIONS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
"""How prompts and samples call the dtypes."""
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class KernelRequest:
    """The kernel that a prompt asks for."""

    backend: str = "cuda"
    precision: str = "bf16"
    hardware: str | None = "h100_8"
    """A profile of src/pkb/hardware; None leaves the hardware out of the prompt."""
    track: str = Track.ANY
    nproc: int | None = None
    """The number of ranks; None takes the problem's usual number."""
    size: str = "paper"
    """The size whose shapes the prompt shows."""
    examples: int = 1
    template: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "precision", _PRECISIONS[find_dtype_name(self.precision)])

    @property
    def dtype(self) -> str:
        return find_dtype_name(self.precision)

    def load_texts(self, problem: Problem) -> Template:
        return Template.load(self.backend, self.template, problem.form)


def write_prompt(problem: Problem, request: KernelRequest, ending: str = "answer") -> str:
    """Return the prompt. `ending` names the section that stands in place of `answer`."""
    template = request.load_texts(problem)
    values = _collect_values(problem, request, template)
    absent = {"hardware"} if request.hardware is None else set()
    absent |= set() if values["examples"] else {"examples"}
    sections = [ending if name == "answer" else name for name in template.parts["sections"] if name not in absent]
    return "\n\n".join(template.fill("text", name, values).strip() for name in sections) + "\n"


def has_examples(problem: Problem, request: KernelRequest) -> bool:
    """Return whether the prompt shows any example where some are asked for."""
    return bool(choose_examples(request.load_texts(problem), request.backend, problem, request.examples))


def _collect_values(problem: Problem, request: KernelRequest, template: Template) -> dict[str, str]:
    """Return the values of all $names that a section may use."""
    size, world = problem.size(request.size), request.nproc or problem.default_world
    values = {
        "problem": problem.stem,
        "reference": problem.show_source(),
        "backend": request.backend,
        "backend_title": template.parts["title"],
        "entry": problem.entry,
        "m": str(size.m),
        "n": str(size.n),
        "size": size.name,
        "nproc": str(world),
        "dtype": request.dtype,
        "constructor": "\n".join(describe_constructor(problem, size)),
        "arguments": "\n".join(describe_arguments(problem, size, request.dtype, world)),
        "worlds": ", ".join(map(str, problem.list_worlds(size))),
        "notes": "\n".join(_list_notes(problem, template)),
        "track": request.track,
        "track_text": template.fill("track", find_track(request.track), {}),
        "barred": "\n".join(_list_barred(find_track(request.track), template)),
        "how": template.parts["how"].strip(),
        "library": "\n".join(_outline_library(template)),
        "precision_text": template.fill("precision", request.precision, {}),
        "examples": "\n".join(_show_examples(problem, request, template)),
    }
    return values | (_describe_hardware(problem, request, world, template) if request.hardware else {})


def _list_notes(problem: Problem, template: Template) -> list[str]:
    named = {"requires": problem.requires, "mutates": problem.mutates, "may_overwrite": problem.may_overwrite}
    notes = [template.fill("notes", note, {"names": "; ".join(names)}) for note, names in named.items() if names]
    return [*filter(None, notes), *([template.fill("notes", "exact", {})] if problem.exact else [])]


def _list_barred(track: Track, template: Template) -> list[str]:
    """Return a line for each rule of the screen that rejects: what it rejects, and what to do instead."""
    rejecting = [rule for rule in load_rules().values() if rule.severity.get(track) is Severity.REJECT]
    listed = [rule for rule in rejecting if rule.name not in template.parts["unlisted_rules"]]
    return [f"- {rule.sentence} (instead: {rule.advice})" for rule in listed]


def _outline_library(template: Template) -> list[str]:
    return [template.fill("text", "library", _outline_file(_PACKAGE / name)) for name in template.parts["library"]]


def _outline_file(path: Path) -> dict[str, str]:
    inside = path.relative_to(_PACKAGE.parent)
    if path.suffix != ".py":
        return {"module": path.name, "language": "cuda", "outline": outline(path)}
    module = ".".join(inside.with_suffix("").parts).removesuffix(".__init__")
    return {"module": module, "language": "python", "outline": outline(path)}


def _show_examples(problem: Problem, request: KernelRequest, template: Template) -> list[str]:
    return [
        template.fill(
            "text",
            "example",
            {"problem": example.problem.stem, "reference": example.problem.show_source(), "kernel": example.kernel},
        )
        for example in choose_examples(template, request.backend, problem, request.examples)
    ]


def _describe_hardware(problem: Problem, request: KernelRequest, world: int, template: Template) -> dict[str, str]:
    hardware = Hardware.load(str(request.hardware))
    costs = problem.rank_costs(request.size, request.dtype, world)
    slowest = max(costs, key=lambda cost: max(hardware.compute_times(cost, request.dtype).values()))
    times = {f"{part}_us": f"{1e6 * s:.3g}" for part, s in hardware.compute_times(slowest, request.dtype).items()}
    facts = "\n".join(_list_facts(hardware, request.dtype, template))
    bound = template.fill("bound", hardware.find_bound(slowest, request.dtype), {})
    return {"hardware_name": hardware.name, "gpu": hardware.gpu, "facts": facts, "bound": bound, **times}


def _list_facts(hardware: Hardware, dtype: str, template: Template) -> list[str]:
    lines = []
    for fact in template.parts["facts"]:
        value: Any = getattr(hardware, fact, None)
        if value and template.parts["facts"][fact]:
            shown = _format_rate(fact, value[dtype] if isinstance(value, dict) else value)
            lines.append(template.fill("facts", fact, {"value": shown, "dtype": dtype}))
    return lines


def _format_rate(fact: str, value: float) -> str:
    if fact.endswith("bytes_per_s"):
        return f"{value / 1e9:,.0f} GB/s"
    return f"{value / 1e12:,.0f} TFLOP/s" if fact.startswith("flops") else f"{value:g}"
