"""A problem in the form of KernelBench: a `Model` with weights of its own, one rank, one device.

The file holds `class Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`, as published ones do; PROBLEM adds
what a sound judge needs. A candidate's file holds `class ModelNew` with the same constructor and forward.
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
from typing import TYPE_CHECKING, Any, ClassVar

from pkb.errors import UsageError
from pkb.problems.cost import Cost, Link
from pkb.problems.problem import PUBLISHED, SOUND, Problem
from pkb.problems.size import ITEMSIZES, Dimensions, Size
from pkb.problems.visible_source import extract_visible_source

# torch and what needs it are imported on use: `pkb list` reads these problems without it.
if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from pkb.problems.case import Case
    from pkb.problems.sound_weights import Normal, Weight

__all__ = ["Constants", "ModelProblem", "load_module_at"]

Constants = Mapping[str, Any]
"""Values for constants of the file, by name; constants that the file computes from them change too."""

_LEVEL = re.compile(r"level_?(\d+)", re.IGNORECASE)
_ALONE: Mapping[str, Callable[[Dimensions], bool]] = {"a model runs on one rank": lambda case: case.world == 1}
_FORM = ("Model", "get_inputs", "get_init_inputs")
_BATCHES = 4
"""The number of hidden sizes."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ModelProblem(Problem):
    """The declaration in a file of KernelBench's form, in addition to the model.

    The file may also define `inputs(case)`, if replacing the values of `torch.rand` by normal ones does not give sound
    inputs, and `MUTANTS` and `EQUIVALENT`, as every problem may.
    """

    category: str = "models"
    source: str = "KernelBench"
    sizes: Mapping[str, Size] = field(default_factory=dict)
    requires: Mapping[str, Callable[[Dimensions], bool]] = field(default_factory=lambda: _ALONE)
    tiny: Constants | None
    """Constants of a size for laptops; the unchanged file has the published size. None if there is no smaller one."""
    hidden: Constants | None
    """Constants of another small size, odd if possible, that no prompt names."""
    state: "Mapping[str, Normal]" = field(default_factory=dict)
    """Distributions of weights, by patterns of their names, for which the default distribution is not sound."""
    level: int = 0
    is_sealed: bool = False
    originals: "dict[Any, nn.Module]" = field(default_factory=dict, repr=False)
    """Constructed references, which a rank copies instead of constructing them for every trial."""

    entry: ClassVar[str] = "ModelNew"
    functions: ClassVar[tuple[str, ...]] = _FORM
    builds: ClassVar[bool] = True
    input_kinds: ClassVar[tuple[str, ...]] = (SOUND, PUBLISHED)
    form: ClassVar[str] = "models"
    default_world: ClassVar[int] = 1
    default_trials: ClassVar[int] = 3

    def bind(self, module: ModuleType, path: Path) -> "ModelProblem":
        number, _, name = path.stem.partition("_")
        level = find_level(path)
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

    def seal(self) -> "ModelProblem":
        """Remove the model: a candidate's rank draws inputs, and must not find the answers."""
        known = self.arguments
        vars(self.module).pop("Model", None)
        return replace(self, arguments_known=known, is_sealed=True)

    @property
    def key(self) -> str:
        return f"L{self.level}/{self.id}" if self.level else str(self.id)

    @property
    def stem(self) -> str:
        return f"L{self.level}_{self.id}_{self.name}" if self.level else f"{self.id}_{self.name}"

    @property
    def default_size(self) -> str:
        return next(iter(self.sizes))

    @property
    def parameters(self) -> list[inspect.Parameter]:
        return [*inspect.signature(self.module.Model.forward).parameters.values()][1:]

    def find_constructor_arguments(self, size: Size) -> dict[str, Any]:
        module = self.load_at(size.name)
        return dict(zip(inspect.signature(module.Model).parameters, module.get_init_inputs(), strict=False))

    def list_hidden_sizes(self, dtype: str = "float32", world: int = 1) -> tuple[Size, ...]:
        """Return the declared hidden size, and some with larger batches; none where none is declared."""
        more = ("", *(f"+{step}" for step in range(1, _BATCHES)))
        return () if self.hidden is None else tuple(Size(name=f"hidden{step}") for step in more)

    def show_source(self) -> str:
        text = self.path.read_text(encoding="utf-8")
        return extract_visible_source(text, _FORM) if hasattr(self.module, "PROBLEM") else text

    def make_candidate_source(self) -> str:
        return f"{self.show_source()}\n\n{self.entry} = Model\n"

    def inputs(self, case: "Case") -> tuple[Any, ...]:
        from pkb.base.pytree import map_tensors
        from pkb.problems.sound_weights import draw_signed

        module = self.load_at(case.size)
        _seed(case.device, case.seed)
        with case.device:
            if not case.published and hasattr(module, "inputs"):
                drawn = module.inputs(case)
            else:
                with nullcontext() if case.published else draw_signed():
                    drawn = module.get_inputs()
        return tuple(map_tensors(value, lambda t: _move(t, case)) for value in drawn)

    def make_recipe(self, size: Size, seeds: tuple[int, int], by_name: bool, without: str = "") -> dict[str, Any]:
        """Return how a rank builds the model of a trial.

        By name, the constructor runs from a seed that is the same in all trials, and then each weight of the reference
        except `without` is drawn. If not by name, the constructor runs from the trial's own seed, and nothing is drawn.
        """
        always, own = seeds
        if not by_name:
            return {"construct": own}
        drawn = [weight.to_message() for weight in self.list_weights(size) if weight.values != without]
        return {"construct": always, "draw": own, "weights": drawn}

    def build(self, entry: Any, case: "Case", recipe: Mapping[str, Any]) -> "nn.Module":
        """Return a `ModelNew`, or without an entry the reference, in the case's dtype with the recipe's weights."""
        from pkb.problems.sound_weights import Weight, fill_weights

        if "weights" not in recipe:
            return self._construct(entry, case, recipe["construct"])
        # The reference is only copied: constructors draw values for all weights, which are then replaced.
        construct = self._construct if entry else self._copy_original
        model = construct(entry, case, recipe["construct"])
        fill_weights(model, [Weight.from_message(message) for message in recipe["weights"]], recipe["draw"])
        return model

    def _construct(self, entry: Any, case: "Case", seed: int) -> "nn.Module":
        """Construct a model as KernelBench does: on the CPU, from the same seed for reference and candidate."""
        import torch

        module = self.load_at(case.size)
        with torch.no_grad():
            torch.manual_seed(seed)
            arguments = module.get_init_inputs()
            torch.manual_seed(seed)
            return (entry or module.Model)(*arguments).to(device=case.device, dtype=case.dtype)

    def _copy_original(self, entry: None, case: "Case", seed: int) -> "nn.Module":
        key = (case.size, case.dtype, seed)
        if key not in self.originals:
            self.originals[key] = self._construct(entry, case, seed)
        return deepcopy(self.originals[key])

    def may_load_state(self, held: Mapping[str, Sequence[int]], size: Size) -> bool:
        """Return whether all of the reference's weights are held, and nothing that may have been computed from them."""
        from pkb.problems.sound_weights import find_held_shapes

        own = _construct_without_values(self, size.name)
        weights_there = all(tuple(held.get(w.name, ())) == w.shape and w.name in held for w in self.list_weights(size))
        return weights_there and held.keys() <= find_held_shapes(own).keys()

    def begin(self, case: "Case") -> None:
        """Seed the draws of a forward: the same for reference and candidate, but not the seed of the inputs."""
        _seed(case.device, case.seed ^ 2)

    def list_weights(self, size: Size) -> "list[Weight]":
        """Return how the reference's weights are drawn at a size, so that the output depends on each of them."""
        from pkb.problems.sound_weights import list_weights

        return list_weights(_construct_without_values(self, size.name), self.state)

    def load_at(self, size: str) -> ModuleType:
        """Load the file's module with the constants of a size."""
        module = load_module_at(self.path, self._find_constants(size))
        if self.is_sealed:
            vars(module).pop("Model", None)
        return module

    def _find_constants(self, size: str) -> Constants:
        name, _, step = size.partition("+")
        constants = {"paper": {}, "tiny": self.tiny, "hidden": self.hidden}[name] or {}
        if not step:
            return constants
        batch = next((name for name in constants if name == "batch_size"), next(iter(constants)))
        return {**constants, batch: constants[batch] + int(step)}

    def count_call_bytes(self, size: Size, dtype: str) -> float:
        """Return the bytes at the published size; no other size is large."""
        return sum(_count_work(self, size.name, ITEMSIZES[dtype])[1]) if size.name == "paper" else 0.0

    def cost(self, case: "Case | Dimensions") -> Cost:
        """Return the operations that torch counts without values, and each input, weight and result moved once."""
        flops, moved = _count_work(self, case.size, case.itemsize)
        return Cost(flops, sum(moved), Link(0.0, 0.0))

    def compute_floor(self, case: "Case") -> Cost:
        """Return the bytes of the results: a solution may fold weights, save products, and drop work without effect."""
        _, (_, results) = _count_work(self, case.size, case.itemsize)
        return Cost(0.0, results, Link(0.0, 0.0))


def make_published_problem(module: ModuleType) -> ModelProblem | None:
    """Return the problem in a file of the published form, which has no PROBLEM; None for any other file."""
    known = all(hasattr(module, name) for name in _FORM)
    return ModelProblem(tiny=None, hidden=None) if known else None


def find_level(path: Path) -> int:
    """Return the number of the folder level1, level2, ...; 0 for other folders."""
    found = _LEVEL.fullmatch(path.parent.name)
    return int(found[1]) if found else 0


def load_module_at(path: Path, constants: Constants) -> ModuleType:
    """Load the file's module with other values for some of its constants."""
    return _load_module_at(path, tuple(sorted((name, _freeze(value)) for name, value in constants.items())))


@cache
def _load_module_at(path: Path, constants: tuple[tuple[str, Any], ...]) -> ModuleType:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
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


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value


def _seed(device: "torch.device", seed: int) -> None:
    """Seed torch for this device. torch.manual_seed walks the whole stack first, and calls are timed."""
    import torch

    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)


def _move(tensor: "Tensor", case: "Case") -> "Tensor":
    return tensor.to(case.device, case.dtype if tensor.dtype.is_floating_point else None)


@cache
def _construct_without_values(problem: ModelProblem, size: str) -> "nn.Module":
    """Construct the reference with shapes but no values, which needs no memory."""
    import torch

    module = problem.load_at(size)
    try:
        with torch.device("meta"):
            return module.Model(*module.get_init_inputs())
    except Exception:
        # A constructor may look at values of its own.
        return module.Model(*module.get_init_inputs()).to("meta")


@cache
def _count_work(problem: ModelProblem, size: str, itemsize: int) -> tuple[float, tuple[float, float]]:
    """Return the floating-point operations of a call, the bytes of inputs and weights, and the bytes of results."""
    import torch

    from pkb.base.pytree import iterate_tensors
    from pkb.problems.flops import count_flops

    dtype = torch.float32 if itemsize == torch.float32.itemsize else torch.bfloat16

    model = _construct_without_values(problem, size).to(dtype)
    case = replace(problem.case(size, "float32"), dtype=dtype, device=torch.device("meta"), published=True)
    arguments = problem.inputs(case)
    read = float(sum(t.nbytes for t in [*iterate_tensors(arguments), *iterate_tensors(model)]))
    try:
        flops, results = count_flops(lambda: model(*arguments))
    except Exception:
        # A model whose control flow depends on values cannot run without them: only a lower bound is known.
        return 0.0, (read, 0.0)
    return flops, (read, float(sum(t.nbytes for t in iterate_tensors(results))))
