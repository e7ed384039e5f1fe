"""Tests that every command and option on the how-to pages exists, and that the index leads to every page.
tests/interop/test_howto.py runs the commands."""

from __future__ import annotations

import re
import shlex
from collections import deque

import pytest

from broker.config.sources import from_file, load
from tests.cli.parsers import parsed
from tests.docs.howto import PAGES, SETTINGS, files, steps, text_of
from tests.sources import ROOT

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+\.md)?(?:#([\w-]+))?\)")
QUESTIONS = 20


def commands(page: str) -> list[list[str]]:
    """Returns the `odradek` command lines of a page, without what a shell adds to them."""
    lines = [re.sub(r"^(until|echo [\w-]+ \||.*-c ')\s*", "", step.command) for step in steps(text_of(page))]
    cut = [re.split(r"\s*(?:[;&|]|2?> )", line)[0] for line in lines if line.startswith("odradek ")]
    return [shlex.split(line) for line in cut]


@pytest.mark.parametrize("page", PAGES + SETTINGS)
def test_a_command_of_a_page_has_these_options(page: str) -> None:
    listed = [words for words in commands(page) if words != ["odradek", "--version"]]
    assert listed
    for words in listed:
        parsed(words[1:])


def test_the_options_of_a_production_cluster_are_valid() -> None:
    nodes = {name: text for name, text in files(text_of("production")).items() if name != "admin.properties"}
    assert set(nodes) == {"controller.properties", "broker-1.properties"}
    for name, text in nodes.items():
        assert not load(from_file(name, text)).unused


def links(page: str) -> set[str]:
    text = re.sub(r"^(    |```).*$", "", (DOCS / page).read_text(), flags=re.MULTILINE)
    return {name for name, _ in LINK.findall(text) if name and "/" not in name}


def test_the_index_leads_to_every_page() -> None:
    direct = links("index.md")
    missing = {page.name for page in DOCS.glob("*.md")} - direct - {"index.md"}
    assert not missing, "each page has its place in one of the four parts"


def test_every_question_is_answered_by_a_page() -> None:
    rows = re.findall(r"^\| (.+\?.*?) \| \[.+\]\((\w[\w-]*\.md)\) \|$", text_of("index", "Questions"), re.MULTILINE)
    assert len(rows) == QUESTIONS
    assert all((DOCS / page).exists() for _, page in rows)


def headings(page: str) -> deque[str]:
    """Returns the anchors of a page's headings, as forges and mkdocs make them."""
    texts = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    return deque(
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).lower()).replace(" ", "-")
        for text in texts
    )


def test_every_heading_that_a_page_links_to_is_there() -> None:
    faults = []
    for page in sorted(DOCS.glob("*.md")):
        for name, anchor in LINK.findall(re.sub(r"`[^`\n]*`", "", page.read_text())):
            target = (page.parent / (name or page.name)).resolve().relative_to(ROOT).as_posix()
            if anchor and anchor not in headings(target):
                faults.append(f"{page.name}: {target}#{anchor}")
    assert not faults
