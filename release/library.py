"""Installs the compiled wheel of dist/ with its locked dependencies, for the image and the Debian package."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

from release.dist import DIST, ROOT, Failed, environment_of, interpreters, run


def version() -> str:
    """Returns the version of this tree."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def install_library(python: tuple[int, int], folder: Path) -> None:
    """Installs for this version of CPython, without symbols for debuggers, which are three quarters of the compiled
    dependencies. Raises Failed if `make dist` has not built the wheel, or if there is no `strip`."""
    tag = "cp" + "".join(map(str, python))
    wheels = [*DIST.glob(f"odradek-{version()}-{tag}-*.whl")]
    if not wheels:
        raise Failed(f"dist/ has no wheel of {version()} for {tag}: run `make dist`")
    if not shutil.which("strip"):
        raise Failed("strip is needed: it is part of the binutils")
    programs = environment_of(next(found for found in interpreters() if found.version == python))
    install = [programs / "python", "-m", "pip", "install", "-q", "--no-compile", "--only-binary", ":all:"]
    install += ["--target", folder]
    run([*install, "--require-hashes", "-r", ROOT / "requirements" / "run.lock"])
    run([*install, "--no-deps", "--upgrade", wheels[0]])
    shutil.rmtree(folder / "bin")  # its scripts name the Python that installs
    # An image's layers round the times of files, by which Python would take half of the bytecode for stale.
    compiled = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", folder]
    run([programs / "python", *compiled])
    run(["strip", "--strip-unneeded", *folder.rglob("*.so*")])
