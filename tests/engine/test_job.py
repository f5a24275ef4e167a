"""A job is plain data: it comes back from JSON as it went in."""

from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.engine import Job
from pkb.problems.size import Size
from pkb.problems.suite import load_problem
from pkb.settings import JudgementSettings, ProblemSettings, Tolerance, Track, find_rigor

SOURCE = "def solution(tensor):\n    return tensor  # é\n".encode() + b"# \xff is no UTF-8\n"


def make_job(**settings: object) -> Job:
    posed = ProblemSettings(2, Size(64, 48), "float16", trials=2)
    asked = JudgementSettings(Track.SCRATCH, tolerance=Tolerance(1e-3, 1e-4), rigor=find_rigor("quick"), profile=True)
    candidate = Candidate.of(SOURCE, "sample-1", "torch")
    return Job.of(load_problem("allreduce"), candidate, posed, asked, **settings)  # type: ignore[arg-type]


def test_a_job_survives_json() -> None:
    job = make_job(out=Path("/runs/first"), fresh=True)
    assert Job.from_json(job.to_json()) == job


def test_what_comes_back_is_the_problem_and_the_candidate() -> None:
    job = Job.from_json(make_job().to_json())
    assert job.load_problem().stem == "1_allreduce"
    candidate = job.make_candidate()
    assert (candidate.source, candidate.name, candidate.backend.name) == (SOURCE, "sample-1", "torch")


@pytest.mark.parametrize("text", ["{}", "[]", '{"suite": "parallel", "problem": "1_allreduce", "source": 3}', "{"])
def test_what_is_no_job_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the parser's
        Job.from_json(text)
