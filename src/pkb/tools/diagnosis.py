"""Look at what judgements need of a machine; `pkb doctor` and `pkb selftest` print what is found."""

import os
import shutil
from dataclasses import dataclass

from pkb.judge.worlds.sandboxed import PLACES, advise, is_closed
from pkb.record import SandboxFacts

_WEAK = ("open", "visible", "empty at the start")
"""What the facts of a sandbox say of something that is neither closed nor limited."""
_SHARED_MEMORY = "/dev/shm"
_LEAST_SHARED_BYTES = 1 << 30


@dataclass(frozen=True)
class Diagnosis:
    """Whether one thing that judgements need is there."""

    what: str
    ok: bool
    detail: str


def diagnose_shared_memory() -> Diagnosis:
    if not os.access(_SHARED_MEMORY, os.W_OK):
        said = f"{_SHARED_MEMORY} is not writable; symmetric buffers go to the temporary folder"
        return Diagnosis("shared memory", False, said)
    free = shutil.disk_usage(_SHARED_MEMORY).free
    is_enough = free > _LEAST_SHARED_BYTES
    advice = "" if is_enough else "; in a container, start it with a larger --shm-size"
    return Diagnosis("shared memory", is_enough, f"{free / 2**30:.1f} GiB free in {_SHARED_MEMORY}{advice}")


def diagnose_sandbox(facts: SandboxFacts) -> list[Diagnosis]:
    """Return the sandbox's level, then for each thing that it may close or limit what held and by which means."""
    refused = [f"no {level}: {reason}" for level, reason in facts.refused.items()]
    advice = [] if is_closed(facts) else [*refused, advise()]
    level = Diagnosis("sandbox", is_closed(facts), "; ".join([facts.level, *advice]))
    held = {place: getattr(facts, place) or "open" for place in PLACES}
    if facts.most_processes:
        held["processes"] += f", at most {facts.most_processes}"
    rows = [Diagnosis(f"sandbox, {place.replace('_', ' ')}", text not in _WEAK, text) for place, text in held.items()]
    return [level, *rows]
