"""A problem in the form of KernelBench: a `Model` with weights of its own, one rank, one device.

The file holds `class Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`, as published ones do; PROBLEM says what
a sound judge needs besides. A candidate's file holds `class ModelNew` with the same constructor and forward.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pkb.base.pytree import mapped, tensors
from pkb.errors import UsageError
from pkb.problems.case import Case
from pkb.problems.cost import Cost, Link
from pkb.problems.problem import Problem, dtype_named
from pkb.problems.size import Size
from pkb.problems.sound_weights import Normal, Weight, fill, held_by, signed, weights
from pkb.problems.visible_source import shown_source

__all__ = ["Constants", "ModelProblem", "Normal", "module_at"]

Constants = Mapping[str, Any]
"""Values for constants of the file, by name; constants that are computed from them follow."""

_LEVEL = re.compile(r"level_?(\d+)", re.IGNORECASE)
_ALONE: Mapping[str, Callable[[Case], bool]] = {"a model runs on one rank": lambda case: case.world == 1}
_FORM = ("Model", "get_inputs", "get_init_inputs")


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelProblem(Problem):
    """What a file of KernelBench's form declares beside the model.

    The file may also define `inputs(case)`, where normal values in place of those of `torch.rand` will not do for sound
    inputs, and `MUTANTS` and `EQUIVALENT`, as every problem may.
    """

    category: str = "models"
    source: str = "KernelBench"
    sizes: Mapping[str, Size] = field(default_factory=dict)
    requires: Mapping[str, Callable[[Case], bool]] = field(default_factory=lambda: _ALONE)
    tiny: Constants | None
    """For a judgement on a laptop; the file as it stands has the published size. None where there is no other."""
    hidden: Constants | None
    """Another small size, odd where it can be, that no prompt names."""
    state: Mapping[str, Normal] = field(default_factory=dict)
    """Weights, by patterns of their names, for which the usual sound draw will not do."""
    level: int = 0
    is_sealed: bool = False
    originals: dict[Any, nn.Module] = field(default_factory=dict, repr=False)
    """References as constructed, in ranks that build them again and again."""

    entry: ClassVar[str] = "ModelNew"
    builds: ClassVar[bool] = True
    form: ClassVar[str] = "models"
    usual_world: ClassVar[int] = 1
    usual_trials: ClassVar[int] = 3

    def bound_to(self, module: ModuleType, path: Path) -> "ModelProblem":
        number, _, name = path.stem.partition("_")
        level = level_of(path)
        names = ["tiny", "paper"] if self.tiny is not None else ["paper"]
        return replace(
            self,
            id=int(number),
            name=name,
            module=module,
            level=level,
            category=f"level{level}" if level else self.category,
            sizes={name: Size(name=name) for name in names},
        )

    def sealed(self) -> "ModelProblem":
        """Without its model: a candidate's rank draws inputs, and has no use for answers."""
        known = self.arguments
        vars(self.module).pop("Model", None)
        return replace(self, arguments_known=known, is_sealed=True)

    @property
    def stem(self) -> str:
        return f"L{self.level}_{self.id}_{self.name}" if self.level else f"{self.id}_{self.name}"

    @property
    def usual_size(self) -> str:
        return next(iter(self.sizes))

    @property
    def parameters(self) -> list[inspect.Parameter]:
        return [*inspect.signature(self.module.Model.forward).parameters.values()][1:]

    def constructed_with(self, size: Size) -> dict[str, Any]:
        module = self.at(size.name)
        return dict(zip(inspect.signature(module.Model).parameters, module.get_init_inputs(), strict=False))

    def hidden_size(self, dtype: str = "float32", world: int = 1) -> Size | None:
        return None if self.hidden is None else Size(name="hidden")

    def shown(self) -> str:
        text = self.path.read_text()
        return shown_source(text, _FORM) if hasattr(self.module, "PROBLEM") else text

    def as_candidate(self) -> str:
        return f"{self.shown()}\n\n{self.entry} = Model\n"

    def inputs(self, case: Case) -> tuple[Any, ...]:
        module = self.at(case.size)
        _seed(case.device, case.seed)
        with case.device:
            if not case.published and hasattr(module, "inputs"):
                drawn = module.inputs(case)
            else:
                with nullcontext() if case.published else signed():
                    drawn = module.get_inputs()
        return tuple(mapped(value, lambda t: _moved(t, case)) for value in drawn)

    def recipe(self, size: Size, seeds: tuple[int, int], by_name: bool, without: str = "") -> dict[str, Any]:
        """By name: how each weight of the reference is drawn, or all but one, over what the constructor made of a seed
        that is always the same. Otherwise what it makes of the trial's seed is all."""
        always, own = seeds
        if not by_name:
            return {"construct": own}
        drawn = [weight.told() for weight in self.weights(size) if weight.values != without]
        return {"construct": always, "draw": own, "weights": drawn}

    def built(self, entry: Any, case: Case, recipe: Mapping[str, Any]) -> nn.Module:
        """A `ModelNew`, or else the problem's own model, in the case's dtype and with the recipe's weights."""
        if "weights" not in recipe:
            return self._constructed(entry, case, recipe["construct"])
        # The reference is only copied: constructors draw values for all weights, which are then replaced.
        made = self._constructed if entry else self._copied
        model = made(entry, case, recipe["construct"])
        fill(model, [Weight.heard(told) for told in recipe["weights"]], recipe["draw"])
        return model

    def _constructed(self, entry: Any, case: Case, seed: int) -> nn.Module:
        """As published: on the CPU, from the same seed on both sides."""
        module = self.at(case.size)
        with torch.no_grad():
            torch.manual_seed(seed)
            arguments = module.get_init_inputs()
            torch.manual_seed(seed)
            return (entry or module.Model)(*arguments).to(device=case.device, dtype=case.dtype)

    def _copied(self, entry: None, case: Case, seed: int) -> nn.Module:
        key = (case.size, case.dtype, seed)
        if key not in self.originals:
            self.originals[key] = self._constructed(entry, case, seed)
        return deepcopy(self.originals[key])

    def takes(self, held: Mapping[str, Sequence[int]], size: Size) -> bool:
        """All of the reference's weights are there, and nothing that may have been computed from them."""
        own = _without_values(self, size.name)
        weights_there = all(tuple(held.get(w.name, ())) == w.shape and w.name in held for w in self.weights(size))
        return weights_there and held.keys() <= held_by(own).keys()

    def begin(self, case: Case) -> None:
        """What a forward draws, both sides draw alike; but not what the inputs were drawn from."""
        _seed(case.device, case.seed ^ 2)

    def weights(self, size: Size) -> list[Weight]:
        """How the reference's weights are drawn at a size, so that each of them shows."""
        return weights(_without_values(self, size.name), self.state)

    def at(self, size: str) -> ModuleType:
        """The file's module at a size."""
        constants = {"paper": {}, "tiny": self.tiny, "hidden": self.hidden}[size] or {}
        module = module_at(self.path, constants)
        if self.is_sealed:
            vars(module).pop("Model", None)
        return module

    def call_bytes(self, size: Size, dtype: str) -> float:
        """Only the published size may be large."""
        return sum(_work(self, size.name, dtype_named(dtype))[1]) if size.name == "paper" else 0.0

    def cost(self, case: Case) -> Cost:
        """What torch counts when it runs the model without values; each input, weight and result moved once."""
        flops, moved = _work(self, case.size, case.dtype)
        return Cost(flops, sum(moved), Link(0.0, 0.0))

    def floor(self, case: Case) -> Cost:
        """Only what must be written: weights may be folded, products saved, and what has no effect left out."""
        _, (_, results) = _work(self, case.size, case.dtype)
        return Cost(0.0, results, Link(0.0, 0.0))


def published_problem(module: ModuleType) -> ModelProblem | None:
    """The problem in a file of the published form, which knows nothing of us; None for any other file."""
    known = all(hasattr(module, name) for name in _FORM)
    return ModelProblem(tiny=None, hidden=None) if known else None


def level_of(path: Path) -> int:
    """From the folder: level1, level2, ...; 0 elsewhere."""
    found = _LEVEL.fullmatch(path.parent.name)
    return int(found[1]) if found else 0


def module_at(path: Path, constants: Constants) -> ModuleType:
    """The file's module with other values for some of its constants."""
    return _module_at(path, tuple(sorted((name, _frozen(value)) for name, value in constants.items())))


@cache
def _module_at(path: Path, constants: tuple[tuple[str, Any], ...]) -> ModuleType:
    tree = ast.parse(path.read_text(), str(path))
    values = dict(constants)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in values:
            node.value = ast.copy_location(ast.parse(repr(values.pop(node.targets[0].id)), mode="eval").body, node)
    if values:
        raise UsageError(f"{path} has no constant {', '.join(values)}; PROBLEM may only name constants of the file")
    module = ModuleType(f"pkb_model_{len(sys.modules)}_{path.stem}")
    module.__file__ = str(path)
    # Data classes look for their module there.
    sys.modules[module.__name__] = module
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), vars(module))
    return module


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _seed(device: torch.device, seed: int) -> None:
    """What torch.manual_seed does for this device. That looks at the whole stack first, and calls are timed."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)


def _moved(tensor: Tensor, case: Case) -> Tensor:
    return tensor.to(case.device, case.dtype if tensor.dtype.is_floating_point else None)


@cache
def _without_values(problem: ModelProblem, size: str) -> nn.Module:
    """The reference with shapes but no values, however large it is."""
    module = problem.at(size)
    try:
        with torch.device("meta"):
            return module.Model(*module.get_init_inputs())
    except Exception:
        # A constructor may look at values of its own.
        return module.Model(*module.get_init_inputs()).to("meta")


@cache
def _work(problem: ModelProblem, size: str, dtype: torch.dtype) -> tuple[float, tuple[float, float]]:
    """Floating-point operations, and the bytes of inputs and weights, and of results."""
    # Slow to import, and rarely needed.
    from pkb.problems.flops import counted

    model = _without_values(problem, size).to(dtype)
    case = replace(problem.case(size, "float32"), dtype=dtype, device=torch.device("meta"), published=True)
    arguments = problem.inputs(case)
    read = float(sum(t.nbytes for t in [*tensors(arguments), *tensors(model)]))
    try:
        flops, results = counted(lambda: model(*arguments))
    except Exception:
        # What depends on values cannot run without them: the least is all that is known.
        return 0.0, (read, 0.0)
    return flops, (read, float(sum(t.nbytes for t in tensors(results))))
