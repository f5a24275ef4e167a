"""What a model reads about its last kernel: taken from the record, without what only the judge may know.

Expected values stay with the judge. So does everything that a kernel could say about the hidden size: what is raised or
printed from that trial on is left out, except for where and how the kernel failed.

A kernel chooses many words of a record: messages, logs, names of threads and kernels. They are clipped, and what may
have several lines is quoted line by line, so that no kernel can write a paragraph that passes for the judge's own.
"""

import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from pkb.base.exception_names import KNOWN_NAMES
from pkb.base.printable import clean_line
from pkb.errors import UsageError
from pkb.generate.sample_files import Turn
from pkb.generate.template import Template
from pkb.record import Evidence, KernelTime, Record, Verdict
from pkb.trial import Trial, TrialKind

KINDS = ("g", "ge", "gep")
_EARLY = ("start", "load", "build")
"""Phases before the first trial."""
_OWN_CHECKS = ("kept", "floor", "empty")
"""Checks before the first trial or after the last one whose reasons repeat nothing that a rank has sent."""
_CHECKED_TRIAL = re.compile(r"\btrial \d+")
_WHERE = {TrialKind.CHECK: None, TrialKind.HIDDEN: "hidden", TrialKind.PROBE: "probe"}
"""By kind of trial: the text of the template's `[where]` in place of what was raised or printed; None keeps that."""
_LATE = "late"
"""The text of `[where]` for everything else after the hidden trial."""
_FRAME = re.compile(r"candidate\.py:\d+")
_MAX_LINES, _MAX_LINE, _MAX_QUOTED, _MAX_REASON = 20, 1000, 3000, 600
_MAX_LOG, _MAX_NAME, _MAX_KERNELS = 2000, 100, 8
_PATH = re.compile(r"""(?<![\w.)\]])(?:/[\w.@+~-]+)+/(?=[\w.@+~-]+)""")
"""The folders of an absolute path, which say nothing to a model."""
_QUOTE = "> "


def parse_feedback_kind(text: str) -> str:
    if text not in KINDS:
        raise UsageError(f"--feedback takes {', '.join(KINDS)}, not {text!r}")
    return text


def write_follow_up(prompt: str, last: Turn, template: Template, kinds: str) -> str:
    """Return the prompt of the turn after `last`, which must have been judged."""
    record = last.read_record()
    assert record, "a turn is judged before the next one is asked for"
    parts = [prompt.strip(), _describe_kernel(last, template)]
    parts += [describe_verdict(record, template)] if "e" in kinds else []
    parts += [describe_speed(record, template)] if "p" in kinds else []
    known = "unknown" if "e" not in kinds else "right" if record.correct else "wrong"
    advice = template.fill("advice", known, {})
    return "\n\n".join([*parts, _fill_section(template, "next", advice=advice)]) + "\n"


def describe_verdict(record: Record, template: Template) -> str:
    """Return the section `execution`: the verdict and what is known about its cause."""
    reason, details = _explain_verdict(record, template)
    if record.setup.world == 1:
        reason = _drop_rank(reason)
    reason = clean_line(_PATH.sub("", reason), _MAX_REASON)
    return _fill_section(template, "execution", verdict=record.verdict.value, reason=reason, details=quote(details))


def describe_speed(record: Record, template: Template) -> str:
    """Return the section `profile`: times, and the kernels in which they were spent."""
    timing, profile = record.timing, record.profile
    if timing is None:
        return _fill_section(template, "untimed")
    low, high = timing.interval
    shares = {rank: f"{100 * share:.0f} %" for rank, share in profile.idle.items()} if profile else {}
    idle = ", ".join(f"rank {rank} {share}" if len(shares) > 1 else share for rank, share in shares.items())
    percent = timing.percent_of_roofline.get("candidate")
    rows = [_describe_kernel_time(row, template) for row in profile.top[:_MAX_KERNELS]] if profile else []
    return _fill_section(
        template,
        "profile",
        reference_us=f"{timing.reference_us:.4g}",
        candidate_us=f"{timing.candidate_us:.4g}",
        speedup=f"{timing.speedup:.3g}",
        low=f"{low:.3g}",
        high=f"{high:.3g}",
        light=template.fill("lines", "light", {"percent": f"{percent:.3g}"}) if percent else "",
        idle=template.fill("lines", "idle", {"shares": idle}) if idle else "",
        top="\n".join(rows),
    )


def _describe_kernel(turn: Turn, template: Template) -> str:
    facts = turn.read_facts() or {}
    if facts.get("candidate") is None:
        return _fill_section(template, "no_code", turn=str(turn.number), notes="; ".join(facts.get("notes", [])))
    kernel = turn.source.decode(errors="replace")
    return _fill_section(template, "kernel", turn=str(turn.number), kernel=f"{kernel.rstrip()}\n")


def _explain_verdict(record: Record, template: Template) -> tuple[str, list[str]]:
    """Return the reason and the lines that explain it."""
    evidence = record.evidence
    if record.verdict in (Verdict.CORRECT, Verdict.REJECTED):
        findings = [*evidence.findings, *record.warnings]
        return record.reason, [_fill_line(template, "finding", asdict(finding)) for finding in findings]
    if where := _find_where(evidence):
        return _redact_failure(record, where, template)
    if evidence.check == "values":
        return _fill_line(template, "value", vars(evidence) | evidence.details), []
    if evidence.type and evidence.message and evidence.message in record.reason:
        advice = [str(evidence.details["advice"])] if "advice" in evidence.details else []
        return _describe_raised(evidence), [evidence.message, *advice, *_list_causes(evidence, template)]
    return record.reason, _list_causes(evidence, template)


def _describe_raised(evidence: Evidence) -> str:
    who = "it" if evidence.rank is None else f"rank {evidence.rank}"
    return f"{who} raised {_check_exception_name(evidence.type)} in {evidence.phase}"


def quote(lines: Iterable[str]) -> str:
    """Return lines that a kernel may have written as a quotation of bounded length, without folders of this machine."""
    plain = [line for text in lines for line in text.splitlines() if line.strip()][:_MAX_LINES]
    quoted = "\n".join(f"{_QUOTE}{clean_line(_PATH.sub('', line), _MAX_LINE)}" for line in plain)
    return quoted if len(quoted) <= _MAX_QUOTED else f"{quoted[:_MAX_QUOTED]}..."


def _drop_rank(reason: str) -> str:
    """Return the reason without ranks: prompts for one GPU never mention ranks."""
    return reason.replace("rank 0, ", "").replace("rank 0", "it")


def _find_where(evidence: Evidence) -> str | None:
    """Return the key of the template's `[where]` for a failure after the ranks saw the hidden size, or None."""
    if evidence.trial:
        return _WHERE.get(evidence.trial.kind, _LATE)
    for kind in (TrialKind.HIDDEN, TrialKind.PROBE):
        if str(Trial(kind)) in evidence.phase:
            return _WHERE[kind]
    if evidence.phase in _EARLY or evidence.check in _OWN_CHECKS or _CHECKED_TRIAL.search(evidence.phase):
        return None
    return _LATE


def _redact_failure(record: Record, where: str, template: Template) -> tuple[str, list[str]]:
    """Return a reason and lines that say where and how the candidate failed, in none of the candidate's own words."""
    evidence = record.evidence
    what = {
        Verdict.WRONG: f"returned a wrong result ({evidence.check})",
        Verdict.HANG: "did not finish",
        Verdict.CRASH: f"raised {_check_exception_name(evidence.type)}" if evidence.type else "was ended",
    }.get(record.verdict, f"failed ({evidence.check})")
    ranks = evidence.ranks or ([] if evidence.rank is None else [evidence.rank])
    who = f"rank {', '.join(map(str, ranks))}" if ranks else "it"
    reason = _fill_line(template, "stripped", {"who": who, "what": what, "where": template.fill("where", where, {})})
    frames = [found[0] for line in evidence.traceback if (found := _FRAME.match(line))]
    return reason, [_fill_line(template, "frame", {"frame": frame}) for frame in frames]


def _list_causes(evidence: Evidence, template: Template) -> list[str]:
    """Return lines with the compiler's errors, frames, stacks of ranks that hang, and the log of a rank that ended."""
    errors = [_fill_line(template, "error", {"error": line}) for line in evidence.errors]
    frames = [*evidence.traceback, *(frame for stack in evidence.stacks.values() for frame in stack)]
    frames = [_fill_line(template, "frame", {"frame": line}) for line in dict.fromkeys(frames)]
    log = evidence.log.strip()[-_MAX_LOG:]
    return [*errors, *frames, *([_fill_line(template, "log", {"log": log})] if log else [])]


def _describe_kernel_time(row: KernelTime, template: Template) -> str:
    name = clean_line(row.name, _MAX_NAME)
    values = {"share": f"{100 * row.share:.0f}", "calls": row.calls, "us": f"{row.us:.1f}", "name": name}
    return _fill_line(template, "top", values)


def _check_exception_name(name: str) -> str:
    """Return the name of an exception's type, unless a candidate could have made it up to leak something."""
    return name if name in KNOWN_NAMES else "an exception"


def _fill_section(template: Template, name: str, **values: str) -> str:
    return template.fill("feedback", name, values).strip()


def _fill_line(template: Template, name: str, values: dict[str, Any]) -> str:
    return template.fill("lines", name, {key: str(value) for key, value in values.items()})
