"""Clocks, streams, graphs and caches: code that changes when work is done."""

from collections.abc import Iterable, Iterator

from pkb.screen.facts import Facts
from pkb.screen.rule import BOTH, Spot, rule


@rule("do the same work however long it takes, and leave measuring to the judge", warn=BOTH)
def watches_the_clock(facts: Facts) -> Iterable[Spot]:
    """measures or spends time"""
    return facts.find_uses(
        *("time", "timeit", "datetime.*.now", "torch.cuda.Event", "torch.Event", "torch.cuda._sleep"),
        *("torch.utils.benchmark", "torch.profiler", "triton.testing"),
        hot=True,
    )


@rule("let the caller wait; order work on the device with the stream", warn=BOTH)
def waits_on_the_host(facts: Facts) -> Iterable[Spot]:
    """makes the host wait for the device in every call"""
    waits = facts.find_uses(
        "torch.cuda.synchronize", "torch.accelerator.synchronize", "*.synchronize", hot=True, setup=False
    )
    yield from waits


@rule("join every stream to the current one before returning; the judge looks for late work", warn=BOTH)
def other_streams(facts: Facts) -> Iterator[Spot]:
    """puts work on another stream"""
    yield from facts.find_uses("torch.cuda.Stream", "torch.cuda.stream", "torch.Stream", "torch.cuda.ExternalStream")
    yield from facts.find_identifiers(
        "cudaStreamCreate*", "cuStreamCreate*", "cudaStreamNonBlocking", "getStreamFromPool"
    )
    yield from facts.find_identifiers("*::getStreamFromPool", "cudaStreamPerThread")


@rule("read the arguments of this call, at whatever address they are", warn=BOTH)
def replays_graphs(facts: Facts) -> Iterator[Spot]:
    """replays work that was recorded for earlier arguments"""
    yield from facts.find_uses("torch.cuda.graph", "torch.cuda.CUDAGraph", "torch.cuda.make_graphed_callables")
    yield from facts.find_identifiers(
        "cudaGraphInstantiate*", "cudaGraphLaunch", "cudaStreamBeginCapture*", "cuGraphLaunch"
    )


@rule("leave the cache as the judge set it", warn=BOTH)
def pins_the_cache(facts: Facts) -> Iterable[Spot]:
    """keeps data in the L2 cache between calls"""
    return facts.find_identifiers("cudaLimitPersistingL2CacheSize", "*accessPolicyWindow", "cudaAccessProperty*")
