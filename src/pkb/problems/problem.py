"""One workload: the reference `solution(...)`, how its inputs are drawn, and what it costs."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from pkb.base.printable import clean_line
from pkb.display import write_facts
from pkb.errors import UsageError
from pkb.problems.cost import Cost
from pkb.problems.size import ITEMSIZES, Dimensions, Size, find_dtype_name
from pkb.problems.visible_source import extract_visible_source

if TYPE_CHECKING:
    import torch

    from pkb.problems.case import Case

WORLDS = (1, 2, 4, 8)
SOUND, PUBLISHED = "sound", "published"
"""The kinds of inputs: values under which a wrong kernel fails, or those that a published suite draws."""
ASPECTS = {
    "function": "what is computed",
    "dtypes": "dtypes of arguments",
    "sizes": "shapes and counts at the published size",
    "values": "what tensors hold",
    "scalars": "numbers that are passed",
    "variants": "what some trials pose beside the published form",
    "result": "what is compared",
}
"""The ways in which a problem may differ from the published one of its number."""
_ENOUGH_SIZES = 4
"""Hidden sizes to choose from, after which no less general ones are tried."""


@dataclass(frozen=True, eq=False)
class Problem:
    """The declaration of a problem file; `id`, `name` and `module` are filled in when the file is loaded.

    Apart from PROBLEM the file holds `solution`, `inputs(case)` and `cost(case)`, and optionally
    `select_outputs(case, output)`, which returns the part of an output whose values have a defined meaning.
    `MUTANTS` are wrong variants of `solution`, by name, that the judge must reject.
    """

    category: str
    source: str
    """The origin of the workload."""
    sizes: Mapping[str, Size]
    """Sizes by name: tiny (judged on a laptop), paper (the published default), large (a production job)."""
    exact: bool = False
    """Values are moved or counted, never rounded: every output is compared bit for bit."""
    exact_sums: bool = False
    """One trial draws small whole numbers, whose sums are exact in any order and compared bit for bit."""
    outliers: bool = True
    """One trial draws a few large values among the normal ones; False where the function is not meant for such."""
    requires: Mapping[str, Callable[[Dimensions], bool]] = field(default_factory=dict)
    """Conditions on size and world size, each under the sentence that explains it."""
    mutates: tuple[str, ...] = ()
    """Arguments that the reference changes in place: their final values are outputs too."""
    may_overwrite: tuple[str, ...] = ()
    """Arguments whose contents after the call do not matter: published kernels use them as scratch."""
    deviations: Mapping[str, str] = field(default_factory=dict)
    """What differs from the published problem, and why, by the names of ASPECTS; docs/deviations.md lists them all."""
    degenerate: str = ""
    """The reason why the function is constant for all inputs; metrics leave such a problem out."""
    id: int = 0
    name: str = ""
    module: ModuleType = field(default=ModuleType("unloaded"), repr=False)
    arguments_known: tuple[str, ...] = field(default=(), repr=False)
    """Names of the arguments, kept for a sealed problem, which has no solution to ask."""

    entry: ClassVar[str] = "solution"
    """The name that a candidate's file must define."""
    functions: ClassVar[tuple[str, ...]] = ("solution", "inputs", "cost")
    """The names that the problem's file must define."""
    builds: ClassVar[bool] = False
    """Whether the entry constructs solutions instead of being one."""
    form: ClassVar[str] = ""
    """The subfolder of generate/templates whose prompt texts replace the general ones; empty for none."""
    input_kinds: ClassVar[tuple[str, ...]] = (SOUND,)
    """The kinds of inputs that the problem can be posed with."""
    default_world: ClassVar[int] = 4
    default_trials: ClassVar[int] = 5

    def __repr__(self) -> str:
        return f"<Problem {self.stem}: {clean_line(self.category)}; sizes {', '.join(self.sizes)}>"

    def _repr_html_(self) -> str:
        facts = {
            "category": self.category,
            "arguments": ", ".join(self.arguments),
            "sizes": "; ".join(f"{name}: {size}" for name, size in self.sizes.items()),
            "needs": "; ".join(self.requires),
            "ranks": ", ".join(map(str, self.list_worlds())),
            "compared": "bit for bit" if self.exact else "by the error of the reference",
            "counts for nothing": self.degenerate,
            "from": self.source,
        }
        return write_facts(f"{self.stem}: {self.title}", "", facts, {"The reference": self.show_source()})

    def bind(self, module: ModuleType, path: Path) -> "Problem":
        """Return the problem with its number and name, which the path gives, and its module."""
        number, _, name = path.stem.partition("_")
        return replace(self, id=int(number), name=name, module=module)

    def seal(self) -> "Problem":
        """Remove the solution and the mutants: a candidate's rank draws inputs, and must not find the answers."""
        names, module = self.arguments, self.module
        vars(module).pop("MUTANTS", None)
        vars(module)["solution"] = _refuse
        return replace(self, arguments_known=names)

    @property
    def stem(self) -> str:
        return f"{self.id}_{self.name}"

    @property
    def key(self) -> str:
        """The shortest text by which commands find the problem in its suite."""
        return str(self.id)

    @property
    def path(self) -> Path:
        return Path(str(self.module.__file__))

    @property
    def root(self) -> Path:
        """The folder that the problem's files lie below."""
        return self.path.parent

    @property
    def helper_folder(self) -> Path | None:
        """The folder of modules that the reference imports, and candidates may import too."""
        return None

    def list_files(self) -> list[Path]:
        """Return the files that a rank needs to load the problem, beside those of pkb."""
        return [self.path]

    @property
    def default_size(self) -> str:
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

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        # Kept: to look into a signature takes as long as a small collective, and every call needs its names.
        return self.arguments_known or tuple(parameter.name for parameter in self.parameters)

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of one call."""
        return [*inspect.signature(self.solution).parameters.values()]

    def inputs(self, case: "Case") -> tuple[Any, ...]:
        """Return the arguments of one call. Raises UsageError where the file returns one argument by itself."""
        from pkb.base.tensors import compute_on_one_thread

        # On busy cores, two threads took 78 ms of processor time for what one draws in 4 ms (problem 61).
        with compute_on_one_thread():
            found = self.module.inputs(case)
        if not isinstance(found, tuple | list):
            # A tensor would be taken apart into its rows.
            raise UsageError(f"{self.path}: inputs returned {type(found).__name__}, not a tuple; return (one, two)")
        return tuple(found)

    def cost(self, case: "Case | Dimensions") -> Cost:
        found = self.ask_module("cost", lambda: self.module.cost(case))
        if not isinstance(found, Cost):
            raise UsageError(f"{self.path}: cost returned {type(found).__name__}, not a Cost; correct the file")
        return found

    def ask_module(self, name: str, call: Callable[[], Any]) -> Any:
        """Return what a function of the file returns. Raises UsageError, which names the function, where it fails."""
        try:
            return call()
        except Exception as error:
            if isinstance(error, UsageError):
                raise
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(f"{self.path}: {name} raised {reason[:500]}; correct the file") from error

    def select_outputs(self, case: "Case", output: Any) -> Any:
        """Return the part of an output that is judged."""
        select = getattr(self.module, "select_outputs", None)
        return select(case, output) if select else output

    def show_source(self) -> str:
        """Return the source that a language model sees: `solution` and what it uses, runnable with torch alone."""
        return extract_visible_source(self.path.read_text(encoding="utf-8"))

    def case(
        self,
        size: str | Size | None = None,
        dtype: str = "float32",
        world: int = 1,
        rank: int = 0,
        device: "torch.device | str" = "cpu",
        **seeds: Any,
    ) -> "Case":
        """Return a case of this problem. Raises UsageError when the mathematics rules the combination out."""
        import torch

        from pkb.problems.case import Case

        posed = self.dimensions(size, dtype, world, rank)
        return Case(
            dtype=find_dtype(dtype),
            device=torch.device(device),
            m=posed.m,
            n=posed.n,
            size=posed.size,
            world=world,
            rank=rank,
            **{"seed": 0, **seeds},
        )

    def dimensions(
        self, size: str | Size | None = None, dtype: str = "float32", world: int = 1, rank: int = 0
    ) -> Dimensions:
        """Return the numbers of a case, without torch. Raises UsageError when the mathematics rules them out."""
        chosen = self.size(size)
        posed = Dimensions(chosen.m, chosen.n, chosen.name, world, ITEMSIZES[find_dtype_name(dtype)], rank)
        for sentence in self.requires:
            if not self._holds(sentence, posed):
                raise UsageError(self._refusal(sentence, chosen, world))
        return posed

    def rank_costs(self, size: str | Size | None, dtype: str, world: int) -> list[Cost]:
        """Return the least work of each rank."""
        return [self.cost(self.dimensions(size, dtype, world, rank)) for rank in range(world)]

    def size(self, size: str | Size | None = None) -> Size:
        """Return the size of this name, a Size unchanged, or the default size for None."""
        if isinstance(size, Size):
            return size
        name = size or self.default_size
        if name not in self.sizes:
            raise UsageError(f"{self.stem} has no size {name!r}; choose from {', '.join(self.sizes)}, or give --m --n")
        return self.sizes[name]

    def list_hidden_sizes(self, dtype: str = "float32", world: int = 1) -> tuple[Size, ...]:
        """Return sizes near `tiny` that no prompt names; `tiny` itself if the conditions allow no other."""
        tiny, found = self.sizes["tiny"], dict[Size, None]()
        for steps in _list_steps(tiny, world):
            sizes = (Size(tiny.m + m, tiny.n + n) for m, n in steps)
            fitting = (size for size in sizes if self.may_be_posed(size, dtype, world))
            found |= dict.fromkeys(size for size in fitting if size not in self.sizes.values())
            if len(found) >= _ENOUGH_SIZES:
                break
        return tuple(found) or (tiny,)

    def may_be_posed(self, size: Size, dtype: str = "float32", world: int = 1) -> bool:
        """Return whether all conditions of the problem hold."""
        posed = Dimensions(size.m, size.n, size.name, world, ITEMSIZES[dtype])
        return all(self._holds(sentence, posed) for sentence in self.requires)

    def _holds(self, sentence: str, posed: Dimensions) -> bool:
        return bool(self.ask_module(f"the condition {sentence!r}", lambda: self.requires[sentence](posed)))

    def list_worlds(self, size: str | Size | None = None) -> tuple[int, ...]:
        """Return those of the world sizes 1, 2, 4 and 8 at which this problem can be posed."""
        return tuple(world for world in WORLDS if self.may_be_posed(self.size(size), world=world))

    def _refusal(self, sentence: str, size: Size, world: int) -> str:
        fitting = ", ".join(map(str, self.list_worlds(size))) or "none of 1, 2, 4, 8"
        return (
            f"{self.stem} cannot be posed with {world} ranks at {size}: {sentence}. "
            f"World sizes that fit: {fitting} (--nproc)"
        )

    def check_pose(self, size: Size, dtype: str, world: int) -> None:
        """Raise UsageError where something other than `requires` rules out that the problem is posed like this."""

    # The members below exist for models (pkb.problems.kernelbench), whose entry is a class that a rank constructs with
    # weights for every trial. For a problem with a plain `solution` they have nothing to do.

    def make_candidate_source(self) -> str:
        """Return the reference as a candidate's file, which the judge must always accept."""
        return self.show_source()

    def find_constructor_arguments(self, size: Size) -> dict[str, Any]:
        """Return the arguments of the entry's constructor by name; none without a constructor."""
        return {}

    def compute_floor(self, case: "Case") -> Cost:
        """Return the least work of an honest solution: no shorter time is believed."""
        return self.cost(case)

    def count_call_bytes(self, size: Size, dtype: str) -> float:
        """Return the bytes of one call's arguments and results; 0 if they are small."""
        return 0.0

    def make_recipe(
        self, size: Size, seeds: tuple[int, int], by_name: bool, without: str = ""
    ) -> dict[str, Any] | None:
        """Return how a rank builds the solution of a trial; None if loading the file is enough."""
        return None

    def may_load_state(self, held: Mapping[str, Sequence[int]], size: Size) -> bool:
        """Return whether a solution with these tensors, shapes by name, can take the reference's state by name."""
        return False

    def build(self, entry: Any, case: "Case", recipe: Mapping[str, Any]) -> Any:
        """Return the solution of a trial, constructed by a candidate's entry or, for None, by the problem itself."""
        raise NotImplementedError

    def begin(self, case: "Case") -> None:
        """Prepare one call of the reference or of a candidate."""


def _list_steps(tiny: Size, world: int) -> Iterator[list[tuple[int, int]]]:
    """Yield groups of what can be added to M and N for a hidden size, the most general group first."""
    odd, shares = (1, 3, 5, 7, 9, 11), tuple(k * world for k in (1, 2, 3, 5, 8))
    yield [*product(odd, odd)]
    yield [*product(shares, odd), *product(odd, shares)]
    # For problems whose ranks must have equal shares, or whole blocks.
    yield [*product(shares, shares)]
    yield [(step, 0) for step in (*odd, *shares)] + [(0, step) for step in (*odd, *shares)]
    yield [(k * tiny.m, j * tiny.n) for k, j in product(range(4), repeat=2) if k or j]


def _refuse(*_: Any) -> None:
    raise RuntimeError("the reference is not here; compute the result yourself")


def find_dtype(name: str) -> "torch.dtype":
    from pkb.problems.case import DTYPES

    return DTYPES[find_dtype_name(name)]
