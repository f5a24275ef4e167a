"""The static screen as the judge asks it: reject, or let in with warnings."""

from pkb.candidate import Candidate
from pkb.failure import Failure
from pkb.record import Verdict
from pkb.screen import ScreenFinding, Severity, screen
from pkb.settings import Track


def admit(candidate: Candidate, track: Track) -> list[ScreenFinding]:
    """Return the warnings. Raises Failure when there is no code, or when a finding rejects the candidate."""
    if not candidate.source.strip():
        raise Failure(
            Verdict.BUILD_FAILED,
            "the candidate's file is empty: there is no code to judge; where a model wrote it, its answer held no code",
            check="empty",
        )
    findings = screen(candidate.source, candidate.backend, track)
    grave = [finding for finding in findings if finding.severity is Severity.REJECT]
    if grave:
        first = grave[0]
        raise Failure(
            Verdict.REJECTED,
            f"line {first.line}: {first.sentence} (rule {first.rule}); {first.advice}",
            check="screen",
            rule=first.rule,
            line=first.line,
            findings=findings,
        )
    return findings
