"""`weft ui` as its users have it: a server of its own, and a real browser that looks at it."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Server:
    """A running `weft ui`."""

    url: str
    process: subprocess.Popen[str]

    @property
    def address(self) -> str:
        return self.url.removeprefix("http://").partition("/")[0]

    def answer(
        self, path: str, body: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Ask as a program would that can say what it likes; headers by their names with _."""
        line = http.client.HTTPConnection(self.address, timeout=30)
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request("GET" if body is None else "POST", path, body, told)
        answer = line.getresponse()
        text = answer.read().decode()
        line.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, text


@contextmanager
def serving(*words: str, cwd: Path) -> Iterator[Server]:
    command = [sys.executable, "-m", "weft", "ui", "--port", "0", *words]
    # Its address must come through a pipe at once, also where Python holds back what is printed.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        command, cwd=cwd, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        said = process.stdout.readline()
        found = re.match(r"weft ui: (http://\S+)", said)
        assert found is not None, process.stderr.read()
        yield Server(found[1].replace("0.0.0.0", "127.0.0.1"), process)
    finally:
        process.terminate()
        process.communicate(timeout=30)


@contextmanager
def browsing() -> Iterator[Any]:
    """A Chromium without a window; skipped where the machine has none."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no Chromium with its driver here: scripts/browser.sh --install")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(driver)
    browser = webdriver.Chrome(options, service)
    try:
        yield browser
    finally:
        browser.quit()


@dataclass(frozen=True)
class Page:
    """What a reader does with a page."""

    browser: Any
    server: Server
    keep_pictures: bool  # in docs, and not only drawn

    def open(self, path: str) -> None:
        self.browser.get(self.server.url + path)

    def one(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.browser.find_elements("css selector", selector)
        return found

    def text(self, selector: str) -> str:
        return str(self.one(selector).text)

    def until(self, what: str, script: str, *given: Any) -> Any:
        """Wait until a script of the page gives something true."""
        from selenium.common.exceptions import TimeoutException
        from selenium.webdriver.support.ui import WebDriverWait

        try:
            return WebDriverWait(self.browser, PATIENCE_S, 0.1).until(
                lambda browser: browser.execute_script(script, *given)
            )
        except TimeoutException:
            raise AssertionError(f"not seen: {what}\n{self.text('main')[:3000]}") from None

    def says(self, selector: str, text: str) -> None:
        script = (
            "return [...document.querySelectorAll(arguments[0])]"
            ".some(e => e.textContent.includes(arguments[1]))"
        )
        self.until(f"{text!r} in {selector}", script, selector, text)

    def type(self, selector: str, text: str) -> None:
        """Put a text into a field, as if it was pasted."""
        script = (
            "arguments[0].value = arguments[1];"
            "arguments[0].dispatchEvent(new Event('input', {bubbles: true}))"
        )
        self.browser.execute_script(script, self.one(selector), text)

    def choose(self, name: str, value: str) -> None:
        from selenium.webdriver.support.ui import Select

        Select(self.one(f"select[name={name}]")).select_by_value(value)

    def looks(self, scheme: str, width: int = 1280, height: int = 900) -> None:
        """Take a dark or a light screen, of a size."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def picture(self, name: str, tmp: Path) -> None:
        """Take a picture; into the documents if these are to be renewed."""
        png = self.browser.get_screenshot_as_png()
        assert len(png) > 10_000, "an empty page"
        folder = PICTURES if self.keep_pictures else tmp
        (folder / f"{name}.png").write_bytes(png)

    def complaints(self) -> list[str]:
        """What the browser complained of: scripts that failed, files that the policy refused."""
        told = self.browser.get_log("browser")
        return [e["message"] for e in told if e["level"] in ("SEVERE", "WARNING")]
