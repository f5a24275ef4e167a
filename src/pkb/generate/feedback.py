"""What a model is told of its last kernel: from the record alone, less what nobody may learn from a judgement.

Expected values stay with the judge. So does all that a kernel could say about the size that no prompt names: what is
raised or printed from that trial on is not repeated, only where and how it failed.
"""

import re
from typing import Any

from pkb.errors import UsageError
from pkb.generate.sample_files import Turn
from pkb.generate.template import Template
from pkb.judge.setup.setup import FIRST_TIMED_TRIAL, HIDDEN_TRIAL, PROBE_TRIAL
from pkb.record import Record, Verdict

KINDS = ("g", "ge", "gep")
_EARLY = ("start", "load", "build")
"""Phases before the first trial."""
_OURS = ("kept", "floor")
"""Checks after the last trial whose reasons hold nothing that a rank has said."""
_TRIAL = re.compile(r"trial (\d+)")
_FRAME = re.compile(r"candidate\.py:\d+")
_MOST_LINES, _MOST_LOG, _MOST_NAME = 20, 2000, 100


def feedback_named(text: str) -> str:
    if text not in KINDS:
        raise UsageError(f"--feedback takes {', '.join(KINDS)}, not {text!r}")
    return text


def follow_up(prompt: str, last: Turn, template: Template, kinds: str) -> str:
    """The prompt of the turn after `last`, which is judged."""
    record = last.record()
    assert record, "a turn is judged before the next is asked for"
    parts = [prompt.strip(), _kernel(last, template)]
    parts += [seen(record, template)] if "e" in kinds else []
    parts += [speed(record, template)] if "p" in kinds else []
    known = "unknown" if "e" not in kinds else "right" if record.correct else "wrong"
    advice = template.filled("advice", known, {})
    return "\n\n".join([*parts, _text(template, "next", advice=advice)]) + "\n"


def seen(record: Record, template: Template) -> str:
    """E: the verdict, and what there is to see of its cause."""
    reason, details = _told(record, template)
    if record.setup["world"] == 1:
        reason = _of_the_only_rank(reason)
    lines = "\n".join(details[:_MOST_LINES])
    return _text(template, "execution", verdict=record.verdict.value, reason=reason, details=lines)


def speed(record: Record, template: Template) -> str:
    """P: times, and where they went."""
    timing, profile = record.timing, record.profile or {}
    if timing is None:
        return _text(template, "untimed")
    low, high = timing["interval"]
    shares = {rank: f"{100 * share:.0f} %" for rank, share in profile.get("idle", {}).items()}
    idle = ", ".join(f"rank {rank} {share}" if len(shares) > 1 else share for rank, share in shares.items())
    percent = timing.get("percent_of_roofline", {}).get("candidate")
    rows = [_top(row, template) for row in profile.get("top", [])[:8]]
    return _text(
        template,
        "profile",
        reference_us=f"{timing['reference_us']:.4g}",
        candidate_us=f"{timing['candidate_us']:.4g}",
        speedup=f"{timing['speedup']:.3g}",
        low=f"{low:.3g}",
        high=f"{high:.3g}",
        light=template.filled("lines", "light", {"percent": f"{percent:.3g}"}) if percent else "",
        idle=template.filled("lines", "idle", {"shares": idle}) if idle else "",
        top="\n".join(rows),
    )


def _kernel(turn: Turn, template: Template) -> str:
    facts = turn.facts() or {}
    if facts.get("candidate") is None:
        return _text(template, "no_code", turn=str(turn.number), notes="; ".join(facts.get("notes", [])))
    kernel = turn.source.decode(errors="replace")
    return _text(template, "kernel", turn=str(turn.number), kernel=f"{kernel.rstrip()}\n")


def _told(record: Record, template: Template) -> tuple[str, list[str]]:
    """The reason, and lines that explain it."""
    evidence = record.evidence
    if record.verdict in (Verdict.CORRECT, Verdict.REJECTED):
        return record.reason, [_line(template, "finding", finding) for finding in _findings(record)]
    if where := _late(record):
        return _stripped(record, where, template)
    if evidence.get("check") == "values":
        return _line(template, "value", evidence), []
    return record.reason, _causes(evidence, template)


def _of_the_only_rank(reason: str) -> str:
    """Who has one rank has never heard of ranks."""
    return reason.replace("rank 0, ", "").replace("rank 0", "it")


def _late(record: Record) -> str | None:
    """Where it failed, if its ranks had met the hidden size by then."""
    evidence = record.evidence
    trial = evidence.get("trial")
    if trial is None and (found := _TRIAL.search(str(evidence.get("phase", "")))):
        trial = int(found[1])
    if trial is None:
        return None if evidence.get("phase") in _EARLY or evidence.get("check") in _OURS else "late"
    late = {HIDDEN_TRIAL: "hidden", PROBE_TRIAL: "probe"}
    return late.get(trial, "late" if trial >= FIRST_TIMED_TRIAL else None)


def _stripped(record: Record, where: str, template: Template) -> tuple[str, list[str]]:
    evidence = record.evidence
    what = {
        Verdict.WRONG: f"returned a wrong result ({evidence.get('check')})",
        Verdict.HANG: "did not finish",
        Verdict.CRASH: f"raised {_name(evidence['type'])}" if "type" in evidence else "was ended",
    }.get(record.verdict, f"failed ({evidence.get('check')})")
    ranks = evidence.get("ranks") or [evidence[name] for name in ("rank",) if name in evidence]
    who = f"rank {', '.join(map(str, ranks))}" if ranks else "it"
    reason = _line(template, "stripped", {"who": who, "what": what, "where": template.filled("where", where, {})})
    frames = [found[0] for line in evidence.get("traceback", []) if (found := _FRAME.match(line))]
    return reason, [_line(template, "frame", {"frame": frame}) for frame in frames]


def _causes(evidence: dict[str, Any], template: Template) -> list[str]:
    """Compiler output, frames, stacks of ranks that hang, and the log of one that has gone."""
    errors = [_line(template, "error", {"error": line}) for line in evidence.get("errors", [])]
    frames = [*evidence.get("traceback", []), *(f for stack in evidence.get("stacks", {}).values() for f in stack)]
    frames = [_line(template, "frame", {"frame": line}) for line in dict.fromkeys(frames)]
    log = str(evidence.get("log", "")).strip()[-_MOST_LOG:]
    return [*errors, *frames, *([_line(template, "log", {"log": log})] if log else [])]


def _findings(record: Record) -> list[dict[str, Any]]:
    return [*record.evidence.get("findings", []), *record.warnings]


def _top(row: dict[str, Any], template: Template) -> str:
    name = "".join(letter if letter.isprintable() else "?" for letter in row["name"][:_MOST_NAME])
    values = {"share": f"{100 * row['share']:.0f}", "calls": row["calls"], "us": f"{row['us']:.1f}", "name": name}
    return _line(template, "top", values)


def _name(type_name: Any) -> str:
    """Of an exception, unless it is made up to say more."""
    name = str(type_name)
    return name if re.fullmatch(r"[A-Z][A-Za-z]{1,40}", name) else "an exception"


def _text(template: Template, name: str, **values: str) -> str:
    return template.filled("feedback", name, values).strip()


def _line(template: Template, name: str, values: dict[str, Any]) -> str:
    return template.filled("lines", name, {key: str(value) for key, value in values.items()})
