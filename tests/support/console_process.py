"""The real `hookproxy console` as a process, and a headless Chromium that one test after another uses."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER: Final = shutil.which("chromedriver")
PATIENCE: Final = 30.0  # seconds until a test stops waiting for what should come at once
_OPTIONS: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions",
    "--force-color-profile=srgb",
)  # fmt: skip


@contextmanager
def console(folder: Path, environ: Mapping[str, str], *arguments: str) -> Iterator[str]:
    """A console, ended afterwards. Yields its first address."""
    command = [sys.executable, "-m", "hookproxy", "console", *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        found = None
        while not found and (line := process.stdout.readline()):
            found = re.search(r"http://\S+", line)
        assert found, process.stderr.read()
        yield found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()
            errors = process.stderr.read()
            process.stdout.close()
            process.stderr.close()
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in errors, errors


class Browser:
    """One browser. Each console is another origin, so nothing of an earlier test is left."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM, "scripts/test installs it"
        assert DRIVER, "scripts/test installs it"
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for option in (*_OPTIONS, f"--user-data-dir={folder}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, Service(DRIVER))
        self.base = ""

    def open(self, first_address: str) -> None:
        """Open a console, with its cookie."""
        self.driver.get(first_address)
        self.until(lambda: "token=" not in self.driver.current_url)
        self.base = self.driver.current_url
        self.messages()  # of the first page, which has no icon

    def go(self, page: str) -> None:
        """Open a page of this console."""
        self.driver.get(self.base + page)

    def look(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Give the page this size, and these colours."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})

    def js(self, script: str, *arguments: object) -> Any:  # noqa: ANN401 - whatever the script returns
        """The result of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def text(self, selector: str = "body") -> str:
        """The visible text of all elements that match."""
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText).join('\\n')"
        return str(self.js(script, selector))

    def count(self, selector: str) -> int:
        """How many elements match."""
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def click(self, selector: str) -> None:
        """Click the first element that matches."""
        self.driver.find_element(By.CSS_SELECTOR, selector).click()

    def type(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.driver.find_element(By.CSS_SELECTOR, selector).send_keys(text)

    def until(self, condition: Any) -> Any:  # noqa: ANN401 - any callable, and its result
        """Wait until the condition holds. Returns its value."""
        return WebDriverWait(self.driver, PATIENCE, 0.02).until(lambda _driver: condition())

    def until_text(self, text: str, selector: str = "body") -> None:
        """Wait until the page shows the text."""
        try:
            self.until(lambda: text in self.text(selector))
        except Exception:
            raise AssertionError(f"{text!r} does not appear in {self.text(selector)!r}") from None

    def messages(self) -> list[str]:
        """What the browser has complained about since the last time."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]  # Selenium has no types for it

    def close(self) -> None:
        """End the browser."""
        self.driver.quit()


FAULTS: Final = """
const faults = [];
const root = document.documentElement;
if (root.scrollWidth > innerWidth) faults.push(`the page is ${root.scrollWidth} wide, the window ${innerWidth}`);

function clipped(element, box) {
  let [left, top, right, bottom] = [box.left, box.top, box.right, box.bottom];
  for (let outer = element.parentElement; outer; outer = outer.parentElement) {
    if (getComputedStyle(outer).overflowX === "visible") continue;
    const edge = outer.getBoundingClientRect();
    [left, top] = [Math.max(left, edge.left), Math.max(top, edge.top)];
    [right, bottom] = [Math.min(right, edge.right), Math.min(bottom, edge.bottom)];
  }
  return { element, left, top, right, bottom };
}
const name = (element) => `${element.tagName} ${(element.innerText || element.name || element.id || "").slice(0, 30)}`;
const looked = "a,button,input,select,textarea,h1,h2,h3,summary,.badge,pre,time,dt,label > span";
const shown = [...document.querySelectorAll(looked)]
  .filter((element) => element.checkVisibility() && !element.closest(".sr, .skip"))
  .flatMap((element) => [...element.getClientRects()].map((box) => clipped(element, box))) // one box for each line
  .filter((box) => box.right - box.left > 1 && box.bottom - box.top > 1);
for (const [place, one] of shown.entries()) {
  for (const other of shown.slice(place + 1)) {
    if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
    const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (width > 2 && height > 2) faults.push(`${name(one.element)} overlaps ${name(other.element)}`);
  }
  if (one.right > innerWidth + 1) faults.push(`${name(one.element)} goes beyond the right edge`);
}

const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgba(color) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
  return { red, green, blue, alpha };
}
function light({ red, green, blue }) {
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = [red, green, blue].map((part) => linear(part / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function background(element) {
  for (let outer = element; outer; outer = outer.parentElement) {
    const found = rgba(getComputedStyle(outer).backgroundColor);
    if (found.alpha === 255) return found;
  }
  return rgba("white");
}
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || !element.checkVisibility() || element.closest(".sr, .skip, :disabled")) continue;
  const style = getComputedStyle(element);
  const [text, back] = [light(rgba(element.closest("svg") ? style.fill : style.color)), light(background(element))];
  const ratio = (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
  const size = parseFloat(style.fontSize);
  const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
  if (ratio < least) faults.push(`${name(element)}: contrast ${ratio.toFixed(2)}`);
}

for (const field of document.querySelectorAll("input:not([type=hidden]),select,textarea")) {
  if (!field.labels.length && !field.ariaLabel) faults.push(`${field.name} has no label`);
}
for (const button of document.querySelectorAll("button, a")) {
  if (!button.checkVisibility() || button.innerText.trim() || button.ariaLabel) continue;
  faults.push("a button or link has no name");
}
for (const image of document.querySelectorAll("svg:not([aria-hidden])")) {
  if (image.getAttribute("role") !== "img" || !image.getAttribute("aria-label")) faults.push("a drawing has no name");
}
for (const [landmark, least] of [["header", 1], ["nav", 1], ["main", 1], ["h1", 1]]) {
  if (document.querySelectorAll(landmark).length < least) faults.push(`there is no ${landmark}`);
}
const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
if (new Set(ids).size !== ids.length) faults.push("an id is there twice");
return [...new Set(faults)];
"""
"""A script that finds what is wrong with how a page looks: too wide, overlaps, contrasts, names, landmarks."""

PLACES: Final = """
return [...document.querySelectorAll("body *")].filter((element) => element.checkVisibility())
  .map((element) => element.getBoundingClientRect())
  .map((box) => [box.x, box.y, box.width, box.height].map(Math.round).join()).join(";");
"""
"""A script that says where all elements are."""


def environment(home: Path) -> dict[str, str]:
    """The environment of the console and the runs of one user, apart from all others."""
    folder = home / "run"
    folder.mkdir(mode=0o700, exist_ok=True)
    return {**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(folder)}
