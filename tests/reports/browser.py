"""A real browser without a window, spoken to over two pipes: what a page shows, asks for and prints. It draws nothing itself.

The browser's own protocol (Chrome DevTools Protocol, `--remote-debugging-pipe`) needs no library: one JSON document after
another, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-dev-shm-usage",
)

# The browser reads from 3 and writes to 4, wherever the pipes are in this process.
_ON_3_AND_4 = """
import os, sys
os.dup2(int(sys.argv[1]), 100), os.dup2(int(sys.argv[2]), 101), os.dup2(100, 3), os.dup2(101, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Tab:
    """One page in the browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._count, self._session = 0, ""
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Asks the browser for something and waits for its answer."""
        self._count += 1
        asked: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        while (told := self._read()).get("id") != self._count or told.get("sessionId", "") != self._session:
            self.hear(told)
        assert "error" not in told, told
        return dict(told["result"])

    def hear(self, told: dict[str, Any] | None = None) -> None:
        """Keeps what the browser tells next of this page; other pages of it have ended."""
        told = told or self._read()
        if told.get("sessionId") == self._session:
            self.events.append(told)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._from, 1 << 16)
            assert more, "the browser has gone"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def open(self, page: Path | str) -> None:
        """Goes to the page and waits until it is there and drawn: before its first frame a click is lost."""
        self.events.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.hear()
        self.call("Page.captureScreenshot", clip={"x": 0, "y": 0, "width": 1, "height": 1, "scale": 1})

    def requested(self) -> list[str]:
        """Every address that was asked for since the page was opened."""
        return [
            event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """What the browser noted about the page: refused styles, broken parts."""
        return [event["params"]["entry"]["text"] for event in self.events if event.get("method") == "Log.entryAdded"]

    def wide(self, width: int, height: int = 900) -> None:
        """As wide as that."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def medium(self, medium: str, scheme: str = "light") -> None:
        """On the screen or on paper."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=medium, features=features)

    def asks(self, expression: str) -> Any:
        """The value of an expression on the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def accessible(self, *roles: str) -> list[dict[str, Any]]:
        """What a screen reader is told, asked for until it holds these roles: the browser makes it beside the page.

        What never comes is missing from the answer after a minute, and the test says which.
        """
        given_up = time.monotonic() + 60
        while True:
            nodes = [node for node in self.call("Accessibility.getFullAXTree")["nodes"] if not node.get("ignored")]
            if {*roles} <= {node["role"]["value"] for node in nodes} or time.monotonic() > given_up:
                return nodes
            self.call("Page.captureScreenshot")  # a drawn frame brings it up to date

    def picture(self) -> bytes:
        """All of the page, as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def pdf(self) -> bytes:
        """The page as it prints."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])


@contextmanager
def browser(profile: Path) -> Iterator[tuple[int, int]]:
    """The pipes to a browser and from it, which is ended afterwards."""
    assert BROWSER is not None
    there, to_browser = os.pipe()
    from_browser, back = os.pipe()
    started = subprocess.Popen(
        [sys.executable, "-c", _ON_3_AND_4, str(there), str(back), BROWSER, *_OPTIONS, f"--user-data-dir={profile}"],
        pass_fds=(there, back),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(there)
    os.close(back)
    try:
        yield to_browser, from_browser
    finally:
        started.terminate()
        started.wait(30)
        os.close(to_browser)
        os.close(from_browser)
