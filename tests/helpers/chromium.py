"""A headless Chromium, driven over two pipes: DevTools messages, each ended by a zero byte."""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    # Needed in containers and for root; the pages are our own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
)
_READS, _WRITES = 3, 4
"""The numbers under which the browser expects its ends of the pipes."""
_DEADLINE_S = 60.0


class Chromium:
    """One browser with one page. What the page complains of gathers in `errors`, what it asks for in `requests`."""

    def __init__(self) -> None:
        assert BROWSER
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._profile = tempfile.TemporaryDirectory(prefix="pkb-chromium-", ignore_cleanup_errors=True)
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._loaded = False
        self._start(BROWSER)
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def open(self, page: Path, **media: str) -> None:
        """Open a file and wait until it is loaded; `prefers_color_scheme="dark"` and the like are its media."""
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.send("Emulation.setEmulatedMedia", features=features)
        self._loaded = False
        self.send("Page.navigate", url=page.resolve().as_uri())
        while not self._loaded:
            self._receive()

    def resize(self, width: int, height: int, phone: bool = False) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script: str) -> Any:
        """The value of an expression once it is true."""
        end = time.monotonic() + _DEADLINE_S
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)
        return value

    def press(self, key: str, text: str = "") -> None:
        """A real key: the page cannot tell it from a person's."""
        code = {"Enter": 13, "Escape": 27, "Tab": 9}.get(key, ord(key.upper()) if len(key) == 1 else 0)
        text = text or (key if len(key) == 1 else "\r" if key == "Enter" else "")
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def write(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """A real click in the middle of the first match, once it is in view."""
        middle = self.run(
            f"""(() => {{
                const found = document.querySelector({json.dumps(selector)});
                found.scrollIntoView({{block: "center", inline: "center", behavior: "instant"}});
                const box = found.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=middle[0], y=middle[1], button="left", clickCount=1)

    def screenshot(self, path: Path) -> Path:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))
        return path

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._call(method, self._session, **parameters)

    def close(self) -> None:
        for end in (self._to, self._from):
            os.close(end)
        os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        self._profile.cleanup()

    def __enter__(self) -> "Chromium":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _start(self, browser: str) -> None:
        with _pipe() as (their_input, self._to), _pipe() as (self._from, their_output):
            actions = [(os.POSIX_SPAWN_DUP2, their_input, _READS), (os.POSIX_SPAWN_DUP2, their_output, _WRITES)]
            quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
            command = [browser, *_FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
            self._process = os.posix_spawn(browser, command, os.environ, file_actions=actions + quiet, setsid=True)
            os.close(their_input)
            os.close(their_output)

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._to, rest) :]
        while (answer := self._receive()).get("id") != number:
            pass
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + _DEADLINE_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._from, 1 << 20)
            assert part, "the browser has gone"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, told: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.errors.append(told["entry"]["text"])


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """Both ends above the numbers that the browser expects, so that moving one never closes the other."""
    low = os.pipe()
    yield fcntl.fcntl(low[0], fcntl.F_DUPFD_CLOEXEC, 10), fcntl.fcntl(low[1], fcntl.F_DUPFD_CLOEXEC, 10)
    for end in low:
        os.close(end)
