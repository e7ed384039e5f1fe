"""Builds the documentation as a site with a search, in dist/site: `make site`.

The pages are those of docs/ and the front pages of the repository. docs/index.md is the table of contents: the site's
navigation is made from it. A link that leads nowhere fails the build.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from release.dist import DIST, ENVIRONMENTS, ROOT, Failed, environment, run

DOCS = ROOT / "docs"
LOCK = ROOT / "requirements" / "site.lock"
SOURCE_URL = "ODRADEK_SOURCE_URL"
FRONT = {path.name: "readme.md" if path.name == "README.md" else path.name.lower() for path in ROOT.glob("*.md")}
"""The front pages and their names on the site."""

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)((?:#[^)]*)?)\)")
CONFIG = {
    "site_name": "Odradek",
    "site_description": "A Kafka broker in Python",
    "theme": {
        "name": "material",
        "font": False,
        "features": ["navigation.sections", "navigation.top", "search.suggest", "content.code.copy"],
    },
    "plugins": ["search"],
    "markdown_extensions": [
        "admonition",
        "tables",
        {"toc": {"permalink": True}},
        {"pymdownx.superfences": {"custom_fences": [{"name": "mermaid", "class": "mermaid"}]}},
    ],
    "validation": {"omitted_files": "warn", "absolute_links": "warn", "anchors": "warn"},
}


def moved(text: str, folder: Path, site: Path) -> str:
    """Returns a page's text with links as the site has them: pages side by side, pictures copied, and other files of
    the repository on its forge, or without a link."""

    def replaced(link: re.Match[str]) -> str:
        is_picture, words, target, anchor = link.groups()
        path = (folder / target).resolve()
        if path.parent == DOCS and path.suffix == ".md":
            return f"[{words}]({path.name}{anchor})"
        if path.parent == ROOT and path.name in FRONT:
            return f"[{words}]({FRONT[path.name]}{anchor})"
        if is_picture:
            shutil.copy(path, site / path.name)
            return f"![{words}]({path.name})"
        source = os.environ.get(SOURCE_URL, "").rstrip("/")
        return f"[{words}]({source}/blob/HEAD/{path.relative_to(ROOT)})" if source else words

    return LINK.sub(replaced, text)


def gather(site: Path) -> None:
    """Fills the folder of the site's pages."""
    for page in DOCS.glob("*.md"):
        (site / page.name).write_text(moved(page.read_text(), DOCS, site))
    for name, page_name in FRONT.items():
        (site / page_name).write_text(moved((ROOT / name).read_text(), ROOT, site))


def navigation(index: str) -> list[dict[str, object]]:
    """Returns the site's navigation: the pages under each heading of its index, in order, each once."""
    parts: list[dict[str, object]] = [{"Home": "index.md"}]
    seen: set[str] = set()
    for title, text in re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", index, re.MULTILINE):
        pages: list[dict[str, str]] = []
        for words, page in re.findall(r"\[([^\]]+)\]\(([\w-]+\.md)\)", text):
            if page not in seen:
                seen.add(page)
                words = " ".join(words.split())
                pages.append({words[0].upper() + words[1:]: page})
        if pages:
            parts.append({title: pages})
    return [*parts, {"README": "readme.md"}]


def build() -> None:
    """Builds dist/site. Raises Failed."""
    programs = environment(ENVIRONMENTS / "site", Path(sys.executable), LOCK)
    with tempfile.TemporaryDirectory(prefix="odradek-site-") as folder:
        pages = Path(folder, "pages")
        pages.mkdir()
        gather(pages)
        nav = navigation((pages / "index.md").read_text())
        config = {**CONFIG, "docs_dir": str(pages), "site_dir": str(DIST / "site"), "nav": nav}
        settings = Path(folder, "mkdocs.json")
        settings.write_text(json.dumps(config))
        print(run([programs / "mkdocs", "build", "--strict", "--quiet", "--config-file", settings]))
    print(f"{len(list((DIST / 'site').rglob('*.html')))} pages in dist/site")


if __name__ == "__main__":
    try:
        build()
    except Failed as error:
        sys.exit(str(error))
