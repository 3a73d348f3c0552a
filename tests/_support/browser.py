"""A headless Chromium for tests, spoken to over two pipes in its own protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0
# Becomes the browser, which speaks on these two descriptors. Pipes are numbered upwards, so the
# second one is never the 3 that is taken first.
ON_3_AND_4 = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
# Background services would ask the network for things that no page wants.
OPTIONS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
    *("--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars"),
]


def find() -> str | None:
    """Return the program, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


class Browser:
    """One browser with one page; a context manager that ends it.

    ``problems`` collects what the console complains about, ``requests`` every address asked for.
    """

    def __init__(self, program: str, profile: Any) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", ON_3_AND_4, str(to_browser), str(from_browser), program),
                *(*OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-pipe"),
            ],
            pass_fds=[to_browser, from_browser],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._received = 0, b""
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._write)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer; events that come meanwhile are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0.0))
            chunk = os.read(self._read, 1 << 20) if ready else b""
            assert chunk, "the browser does not answer"
            self._received += chunk
        text, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def open(self, address: str, *, width: int, height: int, dark: bool = False) -> None:
        """Load a page on a screen of that size, and wait until it is complete."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self.call("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events.append(self._next())

    @property
    def problems(self) -> list[str]:
        """What went wrong on the page since it was opened: errors, warnings, messages."""
        bad = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(e["params"]) for e in self._events if e["method"] in bad]

    @property
    def requests(self) -> list[str]:
        """Every address that the page asked for."""
        sent = (e for e in self._events if e["method"] == "Network.requestWillBeSent")
        return [e["params"]["request"]["url"] for e in sent]

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self) -> bytes:
        """Return the whole page as PNG."""
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(picture["data"])
