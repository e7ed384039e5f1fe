"""Tests that the vendored files are unchanged releases with licences, and that docs/console.md lists them."""

from __future__ import annotations

import re
from hashlib import sha256

import pytest

from tests.sources import ROOT

FOLDER = ROOT / "console" / "static" / "vendor"
ROWS = re.findall(
    r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \| `([0-9a-f]{64})` \|$", (ROOT / "docs/console.md").read_text(), re.M
)


def test_every_vendored_file_is_listed() -> None:
    assert sorted(name for name, *_ in ROWS) == sorted(file.name for file in FOLDER.iterdir())


@pytest.mark.parametrize(("name", "digest"), [(name, digest) for name, _, _, digest in ROWS])
def test_a_vendored_file_has_its_hash(name: str, digest: str) -> None:
    assert sha256((FOLDER / name).read_bytes()).hexdigest() == digest


def test_no_page_loads_anything_from_another_host() -> None:
    for file in [*(ROOT / "console/templates").iterdir(), *(ROOT / "console/static").glob("*.*")]:
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(?:https?:)?//\w+\.\w", text), file.name


def test_no_page_has_inline_code() -> None:
    for file in (ROOT / "console/templates").iterdir():
        text = file.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)|\bstyle=|<style|\son\w+=|hx-on|javascript:", text), file.name
