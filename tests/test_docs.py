"""Tests that each generated page matches its source."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.sources import SIZED, sources

ROOT = Path(__file__).resolve().parent.parent
FRONT = sorted(ROOT.glob("*.md"))
README_LINES = 120
CODE = re.compile(r"`[^`\n]*`")
MODULE = re.compile(r"(?<![\w.])[\w/]*\w\.py\b")
FOLDER = re.compile(r"`([a-z_]+(?:/[a-z_]+)*/)`")
SUBSYSTEMS = ("requests", "log", "replication", "quorum", "groups", "transactions", "share-groups")


@pytest.mark.source_only
@pytest.mark.parametrize(
    "name", ["configuration", "conformance", "limits", "protocol", "security_acls", "security_clients"]
)
def test_a_generated_page_is_fresh(name: str) -> None:
    module = __import__(f"docs.{name}", fromlist=["page"])
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "`make docs` writes it anew"


def test_the_readme_fits_on_a_page_and_leads_to_every_other_front_page() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= README_LINES
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md", "docs/compatibility.md", "docs/index.md"):
        assert f"]({name})" in readme


def test_every_target_that_a_front_page_names_is_in_the_makefile() -> None:
    text = "".join(page.read_text() for page in FRONT)
    named = {
        name for line in re.findall(r"(?:^    |`)make ([a-z][a-z -]*)", text, re.MULTILINE) for name in line.split()
    }
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert named <= set(re.findall(r"^  (\S+)", listed, re.MULTILINE))


@pytest.mark.parametrize("name", ["architecture", *SUBSYSTEMS])
def test_every_module_and_folder_that_a_page_about_the_code_names_is_there(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text()
    there = [f"/{path}" for path, _ in sources(*SIZED)]
    modules = set(MODULE.findall(text))
    assert modules
    for module in modules:
        assert any(path.endswith(f"/{module}") for path in there), module
    for folder in FOLDER.findall(text):
        assert any(f"/{folder}" in path for path in there), folder


def test_the_architecture_leads_to_each_subsystems_page() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert [name for name in SUBSYSTEMS if f"]({name}.md)" not in text] == []


def test_every_file_that_a_page_links_to_is_there() -> None:
    for page in (*FRONT, *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\((?!\w+:)([^)#]+)", CODE.sub("", page.read_text())):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_every_period_that_a_front_page_promises_is_in_the_owners_list() -> None:
    listed = (ROOT / "CONTRIBUTING.md").read_text().partition("## Before the first release")[2].partition("\n## ")[0]
    periods = re.findall(r"\b(\w+) (?:working )?days\b", (ROOT / "SECURITY.md").read_text())
    assert periods == ["three", "90"]
    assert [period for period in periods if period not in listed] == []
