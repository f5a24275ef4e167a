"""A socket in an agent's folder that takes kernels from it. The judge, its seeds and its records stay outside."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pkb.candidate import Candidate
from pkb.engine import Job
from pkb.generate.experiment import Experiment
from pkb.generate.feedback import describe_speed, describe_verdict, quote
from pkb.generate.pipeline import Judging
from pkb.record import Verdict
from pkb.screen import screen
from pkb.settings import find_track

SOCKET = ".judge"
_MAX_BYTES = 4 << 20
"""The most bytes of a request."""


class JudgeSocket:
    """Serves one agent. Its evaluations go, one at a time, to the engine that judges everything else."""

    def __init__(self, experiment: Experiment, judging: Judging):
        self.experiment, self.judging = experiment, judging
        self.evaluations = 0
        self._one_at_a_time = asyncio.Lock()

    @asynccontextmanager
    async def open(self, folder: Path) -> AsyncIterator[None]:
        """Serve the socket in `folder` while the context lasts."""
        server = await asyncio.start_unix_server(self._serve, folder / SOCKET, limit=_MAX_BYTES)
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # An agent may hang up at any time, and send anything.
        with contextlib.suppress(ConnectionError):
            writer.write((await self._answer(reader)).encode(errors="replace"))
            await writer.drain()
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> str:
        try:
            request = json.loads(await reader.readline())
            source = request["source"].encode()
            return self._check(source) if request["do"] == "check" else await self._evaluate(source)
        except (ValueError, KeyError, TypeError, AttributeError):
            return "this is not a request; use ./pkb eval or ./pkb check\n"

    def _check(self, source: bytes) -> str:
        request = self.experiment.request
        findings = screen(source, Candidate.of(source, backend=request.backend).backend, find_track(request.track))
        lines = quote(f"line {f.line}: {f.severity} {f.rule}: {f.sentence}; {f.advice}" for f in findings)
        return "\n".join([*lines.splitlines(), f"{len(findings)} findings in the track {request.track}"]) + "\n"

    async def _evaluate(self, source: bytes) -> str:
        async with self._one_at_a_time:
            self.evaluations += 1
            out = self.experiment.place.folder / "evals" / str(self.evaluations)
            candidate = Candidate.of(source, f"eval-{self.evaluations}", self.experiment.request.backend)
            job = Job.of(self.experiment.problem, candidate, self.judging.posed, self.judging.asked, out)
            record = await asyncio.wrap_future(self.judging.engine.submit(job))
        if record.verdict is Verdict.ENVIRONMENT:
            return f"the machine failed, not the kernel:\n{quote([record.reason])}\n"
        texts = self.experiment.texts
        return f"{describe_verdict(record, texts)}\n\n{describe_speed(record, texts)}\n"
