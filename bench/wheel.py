"""Odradek as its users install it: a wheel of this tree, with the compiled core, built once into .cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

from bench.jars import CACHE, ROOT, locked

PROJECT = ("pyproject.toml", "hatch_build.py", "README.md")
BUILD_TIMEOUT_S = 600
LAUNCHER = f"""#!{sys.executable} -P
import sys
sys.path.insert(0, {{folder!r}})
from odradek import main
sys.exit(main())
"""


class NotBuilt(Exception):
    """pip could not build or install the wheel; the message has its words."""


@cache
def program() -> str:
    """The `odradek` command of an installed wheel. Raises NotBuilt."""
    digest = hashlib.sha256(sys.version.encode())
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = (path for name in wheel["only-include"] for path in (ROOT / name).rglob("*.py"))
    for file in sorted((*files, *(ROOT / name for name in PROJECT))):
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    folder = CACHE / f"odradek-{digest.hexdigest()[:12]}"
    launcher = folder / "odradek-installed"
    with locked("wheel"):
        if not launcher.exists():
            for old in CACHE.glob("odradek-*"):
                shutil.rmtree(old)
            install(folder)
            launcher.write_text(LAUNCHER.format(folder=str(folder)))
            launcher.chmod(0o755)
    return str(launcher)


def install(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-build-isolation", "--target", str(folder), str(ROOT)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if ended.returncode:
        raise NotBuilt(f"`pip install {ROOT.name}` failed: {ended.stdout[-1000:]}{ended.stderr[-1000:]}")
