"""Settings that the whole process shares, and precision that is lower than the reference's."""

from collections.abc import Iterator

from pkb.screen.facts import Facts, is_under
from pkb.screen.rule import BOTH, Spot, rule

_PRECISION = (
    *("torch.backends.*.allow_tf32", "torch.backends.*.fp32_precision", "torch.backends.fp32_precision"),
    *("torch.backends.*.allow_*_reduced_precision_reduction*", "torch.backends.*.conv.fp32_precision"),
)
_NARROW = ("float16", "half", "bfloat16", "float8*", "float4*", "fp8*")


@rule("compute as precisely as the reference; the judge measures errors against float64", warn=BOTH)
def lowers_precision(facts: Facts) -> Iterator[Spot]:
    """trades precision for speed"""
    yield from (use for use in facts.find_uses(*_PRECISION) if use.stored)
    yield from facts.find_uses("torch.set_float32_matmul_precision", "torch.autocast", "torch.cuda.amp", "torch.amp")
    for use in facts.find_uses("triton.language.dot", "triton.language.dot_scaled"):
        for keyword in use.call.keywords if use.call else []:
            chosen = facts.find_literals(keyword.value, use.scope)
            if (keyword.arg == "input_precision" and "tf32" in chosen) or (keyword.arg == "allow_tf32" and any(chosen)):
                yield use


@rule("narrow values only where the problem itself does", warn=BOTH)
def narrows_values(facts: Facts) -> Iterator[Spot]:
    """has fewer bits than a float32 argument"""
    yield from facts.find_uses(
        *(f"{owner}.{name}" for owner in ("torch", "triton.language") for name in _NARROW), hot=True
    )
    yield from (use for use in facts.find_uses("*.half", "*.bfloat16", hot=True) if use.call)


@rule("leave settings of the process as they are; other code depends on them", warn=BOTH)
def changes_settings(facts: Facts) -> Iterator[Spot]:
    """changes a setting for the whole process"""
    yield from facts.find_uses("torch.set_default_*", "torch.use_deterministic_algorithms", "torch.set_num_threads")
    yield from facts.find_uses("torch.cuda.set_device", "torch.manual_seed", "torch.*.manual_seed*", "torch.*.seed*")
    yield from facts.find_uses(
        "random.seed", "numpy.random.seed", "torch.random.set_rng_state", "torch.*.set_rng_state"
    )
    yield from facts.find_uses(
        "torch.cuda.memory.change_current_allocator", "torch.cuda.set_per_process_memory_fraction"
    )
    for use in facts.find_uses("torch.backends", "torch._dynamo.config", "torch._inductor.config"):
        if use.stored and not is_under(use.name, _PRECISION):
            yield use


@rule("the process group is the judge's", reject=BOTH)
def ends_the_process_group(facts: Facts) -> Iterator[Spot]:
    """takes the ranks' process group away"""
    yield from facts.find_uses("torch.distributed.destroy_process_group", "torch.distributed._abort_process_group")
    yield from facts.find_uses("torch.distributed._set_default_group", "torch.distributed._update_default_pg")


@rule("use torch.distributed.group.WORLD, or cache the group under its ranks", warn=BOTH)
def makes_process_groups(facts: Facts) -> Iterator[Spot]:
    """sets up a process group in every call"""
    made = ("init_process_group", "new_group", "new_subgroups*", "init_device_mesh", "device_mesh.init_device_mesh")
    yield from facts.find_uses(*(f"torch.distributed.{name}" for name in made), hot=True, setup=False)
