# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chromium without a window, driven over a pipe (Chrome DevTools Protocol); for pages that this machine made itself."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: Without a sandbox, as root needs it: it opens files that were just written here and nothing else.
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe"),
)
MISSING = f"none of {', '.join(NAMES)} is installed; on Debian: apt-get install chromium"
INCHES_PER_MM = 1 / 25.4


class Setting(NamedTuple):
    """How a page is looked at.  width, height: of the window, in CSS pixels."""

    name: str
    width: int
    height: int
    dark: bool = False
    media: str = "screen"
    phone: bool = False


#: Of A4 with the margins of style.py: 297 - 14 - 16 mm high and 210 - 24 mm wide, at 96 pixels an inch.
PRINTED = Setting("printed", 703, 1009, media="print")
SETTINGS = (
    Setting("desktop", 1366, 768),
    Setting("phone", 390, 844, phone=True),
    Setting("dark", 1366, 768, dark=True),
    PRINTED,
)


def program() -> str:
    """The path of a browser, empty without one."""
    return next((path for name in NAMES if (path := shutil.which(name))), "")


class Page:
    """One page in a browser that runs."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._number = 0
        self._session = ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable")

    def close(self) -> None:
        """End the browser."""
        self._session = ""
        self._call("Browser.close")

    def _messages(self) -> Iterator[dict[str, Any]]:
        rest = b""
        while True:
            part = os.read(self._read, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            *whole, rest = (rest + part).split(b"\0")
            yield from (json.loads(one) for one in whole)

    def _call(self, method: str, event: str = "", **params: Any) -> dict[str, Any]:
        """The result of a command.  event: of the page, to wait for as well."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self._write, left) :]
        result: dict[str, Any] | None = None
        for one in self._messages():
            if one.get("id") == self._number:
                if "error" in one:
                    raise RuntimeError(f"{method}: {one['error']['message']}")
                result = one["result"]
            elif one.get("method") == event:
                event = ""
            if result is not None and not event:
                return result
        raise EOFError

    def open(self, path: Path, setting: Setting, scale: float = 1.0) -> None:
        """Show a file.  scale: pixels of a picture for one of CSS."""
        size: dict[str, Any] = {"width": setting.width, "height": setting.height}
        self._call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=scale, mobile=setting.phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if setting.dark else "light"}
        self._call("Emulation.setEmulatedMedia", media=setting.media, features=[scheme])
        self._call("Page.navigate", event="Page.loadEventFired", url=path.resolve().as_uri())

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def picture(self, clip: tuple[float, float, float, float] | None = None) -> bytes:
        """A PNG of the window, or of a part of the page: left, top, width, height."""
        part: dict[str, Any] = {}
        if clip:
            left, top, width, height = clip
            area = {"x": left, "y": top, "width": width, "height": height, "scale": 1}
            part = {"clip": area, "captureBeyondViewport": True}
        return base64.b64decode(self._call("Page.captureScreenshot", format="png", **part)["data"])

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self._call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])


@contextlib.contextmanager
def running() -> Iterator[Page]:
    """A page in a browser of its own.  RuntimeError where there is no browser."""
    path = program()
    if not path:
        raise RuntimeError(MISSING)
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # The browser reads commands from 3 and answers on 4.
        start = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        process = subprocess.Popen(
            ["bash", "-c", start, path, *OPTIONS, f"--user-data-dir={folder}/profile"],
            env={**os.environ, "HOME": folder},
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            page = Page(ours_out, ours_in)
            yield page
            page.close()
            process.wait(10)
        finally:
            os.close(ours_out)
            os.close(ours_in)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
