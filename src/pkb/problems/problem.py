"""One workload: the reference `solution(...)`, how its inputs are made, what it costs."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import torch

from pkb.errors import UsageError
from pkb.problems.case import DTYPES, Case
from pkb.problems.cost import Cost
from pkb.problems.size import Size
from pkb.problems.visible_source import shown_source

WORLDS = (1, 2, 4, 8)


@dataclass(frozen=True, eq=False)
class Problem:
    """What a problem file declares; `id`, `name` and `module` are filled in when it is loaded.

    Beside PROBLEM the file holds `solution`, `inputs(case)` and `cost(case)`, and where it needs one
    `judged(case, output)`: the part of an output whose values have a defined meaning. `MUTANTS` are
    wrong variants of `solution`, by name, that the judge must reject.
    """

    category: str
    source: str
    """Where the workload comes from."""
    sizes: Mapping[str, Size]
    """By name: tiny (judged on a laptop), paper (the published default), large (a production job)."""
    exact: bool = False
    """Values are moved or counted, never rounded: every output is compared bit for bit."""
    exact_sums: bool = False
    """One trial draws small whole numbers, whose sums are exact in any order and compared bit for bit."""
    requires: Mapping[str, Callable[[Case], bool]] = field(default_factory=dict)
    """Conditions on size and world size, each under the sentence that explains it."""
    mutates: tuple[str, ...] = ()
    """Arguments that the reference changes in place: their final values are outputs too."""
    may_overwrite: tuple[str, ...] = ()
    """Arguments whose contents after the call do not matter: published kernels use them as scratch."""
    degenerate: str = ""
    """Why the function is constant whatever is drawn; such a problem counts for nothing."""
    id: int = 0
    name: str = ""
    module: ModuleType = field(default=ModuleType("unloaded"), repr=False)
    arguments_known: tuple[str, ...] = field(default=(), repr=False)

    entry: ClassVar[str] = "solution"
    """What a candidate's file must define."""
    builds: ClassVar[bool] = False
    """Whether the entry makes solutions, and is not one itself."""
    form: ClassVar[str] = ""
    """Whose texts prompts have: a folder of generate/templates, over what stands beside it."""
    usual_world: ClassVar[int] = 4
    usual_trials: ClassVar[int] = 5

    def bound_to(self, module: ModuleType, path: Path) -> "Problem":
        number, _, name = path.stem.partition("_")
        return replace(self, id=int(number), name=name, module=module)

    def sealed(self) -> "Problem":
        """Without its solution and mutants: a candidate's rank draws inputs, and has no use for answers."""
        names, module = self.arguments, self.module
        vars(module).pop("MUTANTS", None)
        vars(module)["solution"] = _sealed
        return replace(self, arguments_known=names)

    @property
    def stem(self) -> str:
        return f"{self.id}_{self.name}"

    @property
    def path(self) -> Path:
        return Path(str(self.module.__file__))

    @property
    def usual_size(self) -> str:
        return "tiny"

    @property
    def title(self) -> str:
        """The first paragraph of the file's docstring, on one line."""
        return " ".join(inspect.cleandoc(self.module.__doc__ or "").split("\n\n")[0].split())

    @property
    def solution(self) -> Callable[..., Any]:
        return self.module.solution

    @property
    def mutants(self) -> Mapping[str, Callable[..., Any]]:
        return getattr(self.module, "MUTANTS", {})

    @property
    def equivalent(self) -> Mapping[str, str]:
        """Faults of `pkb lint` that compute the same function here, each with the reason."""
        return getattr(self.module, "EQUIVALENT", {})

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.arguments_known or tuple(parameter.name for parameter in self.parameters)

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """Of a call."""
        return [*inspect.signature(self.solution).parameters.values()]

    def constructed_with(self, size: Size) -> dict[str, Any]:
        """What the constructor is given, by name; nothing where there is none."""
        return {}

    def inputs(self, case: Case) -> tuple[Any, ...]:
        return tuple(self.module.inputs(case))

    def cost(self, case: Case) -> Cost:
        return self.module.cost(case)

    def judged(self, case: Case, output: Any) -> Any:
        select = getattr(self.module, "judged", None)
        return select(case, output) if select else output

    def floor(self, case: Case) -> Cost:
        """The work below which no time is honest."""
        return self.cost(case)

    def shown(self) -> str:
        """The source that a model is given: `solution` and what it uses, runnable with torch alone."""
        return shown_source(self.path.read_text())

    def as_candidate(self) -> str:
        """The reference as a candidate's file: the one that must always be right."""
        return self.shown()

    def call_bytes(self, size: Size, dtype: str) -> float:
        """What the arguments and results of one call weigh; 0 where it does not matter."""
        return 0.0

    def recipe(self, size: Size, seeds: tuple[int, int], by_name: bool, without: str = "") -> dict[str, Any] | None:
        """What a rank must know to build the solution of a trial; None where it is ready when it is loaded."""
        return None

    def takes(self, held: Mapping[str, Sequence[int]], size: Size) -> bool:
        """Whether a solution that holds these tensors, shapes by name, can be given the reference's state by name."""
        return False

    def begin(self, case: Case) -> None:
        """Done before a call, on both sides."""

    def built(self, entry: Any, case: Case, recipe: Mapping[str, Any]) -> Any:
        """The solution of a trial: made by what a candidate's file defines or, without that, by the problem itself."""
        raise NotImplementedError

    def case(
        self,
        size: str | Size | None = None,
        dtype: str = "float32",
        world: int = 1,
        rank: int = 0,
        device: torch.device | str = "cpu",
        **seeds: Any,
    ) -> Case:
        """A case of this problem. Raises UsageError when the mathematics rules the combination out."""
        m_n = self.size(size)
        case = Case(
            dtype=dtype_named(dtype),
            device=torch.device(device),
            m=m_n.m,
            n=m_n.n,
            size=m_n.name,
            world=world,
            rank=rank,
            **{"seed": 0, **seeds},
        )
        for sentence, holds in self.requires.items():
            if not holds(case):
                raise UsageError(self._refusal(sentence, case))
        return case

    def size(self, size: str | Size | None = None) -> Size:
        """By name, or as it is; the usual one when none is given."""
        if isinstance(size, Size):
            return size
        name = size or self.usual_size
        if name not in self.sizes:
            raise UsageError(f"{self.stem} has no size {name!r}; choose from {', '.join(self.sizes)}, or give --m --n")
        return self.sizes[name]

    def hidden_size(self, dtype: str = "float32", world: int = 1) -> Size | None:
        """A size near `tiny` that no prompt names; `tiny` itself where the conditions leave no other."""
        tiny = self.sizes["tiny"]
        steps = [(5, 3), (3, 5), (3, 0), (0, 3)]
        # Where the ranks must share evenly, or blocks be whole.
        steps += [step for k in (world, 3 * world, 8 * world) for step in ((k, k), (k, 0), (0, k))]
        steps += [(tiny.m, tiny.n), (tiny.m, 0), (0, tiny.n)]
        sizes = (Size(tiny.m + m, tiny.n + n) for m, n in steps)
        return next((size for size in sizes if self.fits(size, dtype, world)), tiny)

    def fits(self, size: Size, dtype: str = "float32", world: int = 1) -> bool:
        """Whether the problem can be posed like this."""
        case = Case(0, dtype_named(dtype), torch.device("cpu"), m=size.m, n=size.n, size=size.name, world=world)
        return all(holds(case) for holds in self.requires.values())

    def worlds(self, size: str | Size | None = None) -> tuple[int, ...]:
        """The usual world sizes at which this problem can be posed."""
        return tuple(world for world in WORLDS if self.fits(self.size(size), world=world))

    def _refusal(self, sentence: str, case: Case) -> str:
        size = Size(case.m, case.n, case.size)
        fitting = ", ".join(map(str, self.worlds(size))) or "none of 1, 2, 4, 8"
        return (
            f"{self.stem} cannot be posed with {case.world} ranks at {size}: {sentence}. "
            f"World sizes that fit: {fitting} (--nproc)"
        )


def _sealed(*_: Any) -> None:
    raise RuntimeError("the reference is not here; compute the result yourself")


def dtype_named(name: str) -> torch.dtype:
    if name not in DTYPES:
        raise UsageError(f"unknown dtype {name!r}; choose from {', '.join(DTYPES)}")
    return DTYPES[name]
