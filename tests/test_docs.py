"""Tests that each generated page matches its source."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = re.compile(r"`[^`\n]*`")


@pytest.mark.source_only
@pytest.mark.parametrize(
    "name", ["configuration", "conformance", "limits", "protocol", "security_acls", "security_clients"]
)
def test_a_generated_page_is_fresh(name: str) -> None:
    module = __import__(f"docs.{name}", fromlist=["page"])
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "`make docs` writes it anew"


def test_every_target_that_the_readme_names_is_in_the_makefile() -> None:
    named = set(re.findall(r"(?:^    |`)make ([a-z][a-z-]*)", (ROOT / "README.md").read_text(), re.MULTILINE))
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert named <= set(re.findall(r"^  (\S+)", listed, re.MULTILINE))


def test_every_file_that_a_page_links_to_is_there() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\((?!\w+:)([^)#]+)", CODE.sub("", page.read_text())):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
