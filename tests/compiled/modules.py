"""The modules that the wheel has compiled."""

from __future__ import annotations

import tomllib

from tests.sources import ROOT


def compiled_modules() -> list[str]:
    """Returns the paths of the modules that pyproject.toml lists."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    return list(tables["wheel"]["hooks"]["custom"]["modules"])


def module_name(path: str) -> str:
    """Returns the name under which a file of the tree is imported."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
