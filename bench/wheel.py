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
def built() -> Path:
    """The wheel's file; what is installed of it is beside it. Raises NotBuilt."""
    digest = hashlib.sha256(sys.version.encode())
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = (path for name in wheel["only-include"] for path in (ROOT / name).rglob("*.py"))
    for file in sorted((*files, *(ROOT / name for name in PROJECT))):
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    folder = CACHE / f"odradek-{digest.hexdigest()[:12]}"
    with locked("wheel"):
        if not any(folder.glob("*.whl")):
            for old in CACHE.glob("odradek-*"):
                shutil.rmtree(old)
            pip("wheel", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    return next(folder.glob("*.whl"))


@cache
def program() -> str:
    """The `odradek` command of the installed wheel. Raises NotBuilt."""
    wheel = built()
    folder = wheel.parent / "installed"
    launcher = folder / "odradek-installed"
    with locked("wheel"):
        if not launcher.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of an install that was cut short pip would keep what is there
            pip("install", "--target", str(folder), str(wheel))
            launcher.write_text(LAUNCHER.format(folder=str(folder)))
            launcher.chmod(0o755)
    return str(launcher)


def pip(verb: str, *arguments: str) -> None:
    """Runs pip of this Python without what the wheel depends on. Raises NotBuilt."""
    command = [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", "--no-deps", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if ended.returncode:
        raise NotBuilt(f"`pip {verb}` of {ROOT.name} failed: {ended.stdout[-1000:]}{ended.stderr[-1000:]}")
