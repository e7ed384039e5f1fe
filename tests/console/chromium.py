"""A real browser for the tests of pages, and axe-core, which finds faults of accessibility."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import ConsoleMessage, Dialog, Page, sync_playwright

from tests.console.browser import ConsoleProcess
from tests.sources import ROOT

CHROMIUM = "/usr/bin/chromium"
AXE = "axe-core@4.14.1"
WIDE, NARROW = 1280, 400

Open = Callable[..., Page]


@contextmanager
def running_chromium() -> Iterator[Chromium]:
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def axe_source() -> str:
    """Returns the source of axe-core, installed once by npm into .cache."""
    folder = ROOT / ".cache" / "axe"
    file = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not file.exists():
        line = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--no-save", AXE]
        subprocess.run(line, check=True, capture_output=True, timeout=300)
    return file.read_text()


def serious_faults(page: Page, axe: str) -> list[str]:
    """Returns the serious faults of accessibility of a page."""
    page.evaluate(axe)
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{fault['id']}: {fault['help']}: {[node['html'][:160] for node in fault['nodes'][:3]]}"
        for fault in result["violations"]
        if fault["impact"] in ("serious", "critical")
    ]


def width_of(page: Page) -> int:
    """Returns the width that the whole page needs."""
    return int(page.evaluate("document.documentElement.scrollWidth"))


@contextmanager
def opening(chromium: Chromium, console: ConsoleProcess) -> Iterator[Open]:
    """Opens pages; fails at the end if one of them logged an error, or showed a dialog of a script."""
    faults: list[str] = []
    contexts = []

    def on_line(line: ConsoleMessage) -> None:
        if line.type == "error":
            faults.append(line.text)

    def on_dialog(dialog: Dialog) -> None:
        faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open_page(path: str, width: int = WIDE, scheme: Literal["light", "dark"] = "light") -> Page:
        context = chromium.new_context(viewport={"width": width, "height": 860}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.goto(console.url)
        page.on("console", on_line)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", on_dialog)
        page.goto(console.base + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not [fault for fault in faults if "404" not in fault]
