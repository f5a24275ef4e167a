"""A provider on loopback that speaks OpenAI's chat-completions protocol. The model's name says how it behaves.

`kernel`, `wrong`, `two` … always answer in the same way; `busy`, `broken` … fail the first time they get a request,
and then answer as `kernel` does. `test` is right in some samples, and `learner` in one turn: see `RIGHT` and `LEARNT`.
`pkb generate 1 --model openai/busy --api-base URL` is all that a test needs.
"""

import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SOLUTIONS = Path(__file__).parents[2] / "solutions" / "triton"
MODELS = SOLUTIONS.parent / "kernelbench" / "triton"
KEY = "sk-of-the-tests-0123456789abcdef"
RETRY_AFTER_S = 1
FOR_EVER = ("locked", "hopeless", "unknown", "toolong")
"""Faults that do not pass."""
REFUSAL = "I cannot help with that."
WRONG = "def solution(tensor):\n    return tensor.clone()\n"
WRONG_MODEL = """import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, first, *others):
        return first.clone()
"""
RIGHT = {1: 1, 2: 2, 3: 3, 4: 0, 5: 1, 6: 2, 7: 3, 8: 0}
"""By problem: how many of the first three answers of `test` are right. Then come a wrong kernel and rubbish."""
LEARNT = {1: 2, 2: 3, 3: 4, 4: 1, 5: 2, 6: 3, 7: 4, 8: 1}
"""By problem: the one turn in which `learner` is right. In all others its kernel is wrong."""


def fence(source: str) -> str:
    return f"```python\n{source}```\n"


def find_problem(prompt: str) -> str:
    """Return the problem that a prompt names first."""
    return re.findall(r"\b(?:L\d+_)?\d+_\w+", prompt)[0]


def find_number(prompt: str) -> int:
    """Return the problem's number, within its level where there are levels."""
    return int(re.findall(r"\d+", find_problem(prompt).removeprefix("L1_"))[0])


def read_shipped(prompt: str) -> str:
    """Return the kernel that is shipped for the prompt's problem."""
    problem = find_problem(prompt)
    return ((MODELS if problem.startswith("L") else SOLUTIONS) / f"{problem}_triton.py").read_text()


def write_wrong(prompt: str) -> str:
    return WRONG_MODEL if find_problem(prompt).startswith("L") else WRONG


def find_turn(prompt: str) -> int:
    return 1 + max(map(int, re.findall(r"^# Your \w+ of turn (\d+)$", prompt, re.MULTILINE)), default=0)


def choose_behaviour(prompt: str, count: int) -> str:
    """Return how `test` answers a prompt the count-th time that it gets it."""
    right = RIGHT[find_number(prompt)]
    return "kernel" if count <= right else "wrong" if count == right + 1 else "rubbish"


def write_command(words: str) -> str:
    return f"I shall do this.\n\n```bash\n{words}\n```\n"


def write_candidate(source: str, then: str) -> str:
    return write_command(f"cat > candidate.py <<'EOF'\n{source}EOF\n{then}")


def act(behaviour: str, messages: list[dict[str, str]]) -> str | None:
    """Return the next answer of a model that works in a shell; None for other behaviours."""
    task = messages[1]["content"] if len(messages) > 1 else ""
    steps = {
        "worker": [
            write_candidate(write_wrong(task), "./pkb eval"),
            write_candidate(read_shipped(task), "./pkb check && ./pkb eval"),
        ]
        if task
        else [],
        "spy": [write_command(LOOK), write_candidate(WRONG, "ln -sf /etc/passwd candidate.py")],
        "mumbler": ["Let me think about it."] * 9,
        "idler": [write_command("sleep 0.1")] * 99,
        "sleeper": [write_command("sleep 600")],
    }
    if behaviour not in steps:
        return None
    done = sum(message["role"] == "assistant" for message in messages)
    return [*steps[behaviour], write_command("submit")][min(done, len(steps[behaviour]))]


LOOK = (
    "env; cat /proc/*/environ | tr '\\0' '\\n'; python -c 'import pkb.judge'; ls -la; ls /root /home /work; "
    "cat reference.py; curl -sm 2 http://127.0.0.1:1 || echo no network"
)


def write_answer(behaviour: str, prompt: str, count: int = 1) -> str | None:
    match behaviour:
        case "test":
            return write_answer(choose_behaviour(prompt, count), prompt)
        case "learner":
            return write_answer("kernel" if find_turn(prompt) == LEARNT[find_number(prompt)] else "wrong", prompt)
        case "wrong":
            return f"Here it is.\n\n{fence(write_wrong(prompt))}\nGood luck!"
        case "rubbish":
            return "Kernels are programs that run on many cores at once."
        case "empty":
            return ""
        case "refusal":
            return None
        case "two":
            return f"First try:\n{fence(WRONG)}\nBetter:\n{fence(read_shipped(prompt))}\nThe second is right."
        case "truncated":
            kernel = read_shipped(prompt)
            return f"```python\n{kernel[: kernel.rindex('grid')]}"
    return f"This kernel publishes, meets and sums.\n\n{fence(read_shipped(prompt))}"


@dataclass
class ChatRequest:
    """One request as it came in."""

    behaviour: str
    prompt: str
    body: dict[str, Any]
    authorization: str
    when: float = field(default_factory=time.monotonic)

    @property
    def identity(self) -> str:
        """What samples differ by: the prompt and the seed."""
        return json.dumps([self.behaviour, self.prompt, self.body.get("seed")])


class Provider:
    """The server, the requests it got, and how many answers `slow` may give before it makes clients wait."""

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        self.allowed, self.closing = threading.Semaphore(0), threading.Event()
        self._lock, self._seen = threading.Lock(), Counter[str]()
        provider = self

        class Handler(_Handler):
            home = provider

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def count_request(self, request: ChatRequest) -> int:
        """Note a request; return how often it was made, this time included."""
        with self._lock:
            self.requests.append(request)
            self._seen[request.identity] += 1
            return self._seen[request.identity]

    def count(self, behaviour: str) -> int:
        return sum(request.behaviour == behaviour for request in self.requests)

    def allow(self, answers: int) -> None:
        self.allowed.release(answers)

    def close(self) -> None:
        self.closing.set()
        self.allow(1000)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: in some tests clients hang up."""


class _Handler(BaseHTTPRequestHandler):
    home: Provider

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][-1]["content"]
        request = ChatRequest(body["model"], prompt, body, self.headers.get("Authorization", ""))
        count = self.home.count_request(request)
        fault = getattr(self, f"_{request.behaviour}", None)
        if fault and (count == 1 or request.behaviour in FOR_EVER):
            fault()
        else:
            self._answer(request, count)

    def _answer(self, request: ChatRequest, count: int) -> None:
        if request.behaviour == "slow":
            self.home.allowed.acquire()
        text = act(request.behaviour, request.body["messages"]) or write_answer(
            request.behaviour, request.prompt, count
        )
        message = {"role": "assistant", "content": text, "refusal": REFUSAL if text is None else None}
        reason = "length" if request.behaviour == "truncated" else "stop"
        usage: dict[str, int] | None = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
        if request.behaviour == "uncounted":
            usage = None
        choice = {"index": 0, "message": message, "finish_reason": reason}
        facts = {"id": "answer-1", "object": "chat.completion", "created": 1, "model": request.behaviour}
        self._send(200, facts | {"choices": [choice], "usage": usage})

    def _send(self, status: int, answer: dict[str, Any], **headers: str) -> None:
        self._send_bytes(status, json.dumps(answer).encode(), **headers)

    def _send_bytes(self, status: int, answer: bytes, **headers: str) -> None:
        self.send_response(status)
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(answer))}
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(answer)

    def _error(self, status: int, message: str, **headers: str) -> None:
        self._send(status, {"error": {"message": message, "type": "error", "code": None}}, **headers)

    def _busy(self) -> None:
        self._error(429, "slow down", Retry_After=str(RETRY_AFTER_S))

    def _later(self) -> None:
        self._error(429, "slow down", Retry_After=formatdate(time.time() + 2 * RETRY_AFTER_S, usegmt=True))

    def _broken(self) -> None:
        self._error(500, "something went wrong here")

    _hopeless = _broken

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _stall(self) -> None:
        self.home.closing.wait()

    def _malformed(self) -> None:
        self._send_bytes(200, b'{"choices": [{"message": {"con')

    def _hollow(self) -> None:
        self._send(200, {"id": "answer-1", "object": "chat.completion", "created": 1, "model": "hollow", "choices": []})

    def _locked(self) -> None:
        """Repeat the key in the error, as some providers do."""
        self._error(401, f"incorrect key provided: {self.headers.get('Authorization')}")

    def _unknown(self) -> None:
        self._error(404, "there is no such model")

    def _toolong(self) -> None:
        self._error(400, "this prompt is too long")
