"""Odradek as its users install it: a wheel of this tree with the compiled core, built once into .cache.

BROKER_PYTHON names the interpreter that runs it, if that is not the one of this program: another build of the same
version, because a build with profile-guided optimization needs less processor time (docs/benchmarks.md).

`python -m bench.wheel` prints the command for `make run`: the wheel's if it is built. Otherwise it prints the source
tree's, which is pure Python, and builds the wheel in the background.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path

from bench.jars import CACHE, ROOT, locked

PROJECT = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
BUILD_TIMEOUT_S = 1_800
IN_USE = "in-use"
LAUNCHER = """#!{python} -P
import fcntl, os, sys
in_use = os.open({in_use!r}, os.O_RDWR | os.O_CREAT)
fcntl.flock(in_use, fcntl.LOCK_SH)  # until this process ends: it imports what it needs when it first needs it
sys.path[:0] = {folders!r}
from odradek import main
sys.exit(main())
"""
LOG = CACHE / "wheel.log"
BUILD = [sys.executable, "-m", "bench.wheel", "--build"]
TAG = sys.implementation.cache_tag


class NotBuilt(Exception):
    """The wheel could not be built, installed or run; the message has the reason."""


@cache
def interpreter() -> str:
    """Returns the interpreter that runs the wheel. Raises NotBuilt if BROKER_PYTHON is of another version."""
    python = os.environ.get("BROKER_PYTHON") or sys.executable
    if python != sys.executable and (tag := of_interpreter(python, "sys.implementation.cache_tag")) != TAG:
        raise NotBuilt(f"BROKER_PYTHON={python} is {tag}, and the wheel is for {TAG}")
    return python


def of_interpreter(python: str, expression: str) -> str:
    """Returns the value of an expression in an interpreter that has imported `platform` and `sys`. Raises NotBuilt."""
    command = [python, "-c", f"import platform, sys; print({expression})"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotBuilt(f"BROKER_PYTHON={python} does not run: {error}") from error


@cache
def python_version() -> str:
    """Returns the version of the interpreter that runs the wheel. Raises NotBuilt."""
    return of_interpreter(interpreter(), "platform.python_version()")


def command_in(home: Path) -> Path:
    """Returns the `odradek` command of the wheel in a folder. Each interpreter has an installation of its own. Raises
    NotBuilt."""
    python = interpreter()
    digest = "" if python == sys.executable else f"-{hashlib.sha256(python.encode()).hexdigest()[:8]}"
    return home / f"installed{digest}" / "odradek-installed"


@cache
def folder() -> Path:
    """Returns the folder of the current tree's wheel: its name is a digest of all files that the wheel is built
    from.
    """
    digest = hashlib.sha256(sys.version.encode())
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = (path for name in wheel["only-include"] for path in (ROOT / name).rglob("*.py"))
    for file in sorted((*files, *(ROOT / name for name in PROJECT))):
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return CACHE / f"odradek-{digest.hexdigest()[:12]}"


def launcher() -> Path:
    """Returns the `odradek` command of the installed wheel. It is created last, so if it exists, the installation is
    complete.
    """
    return command_in(folder())


@cache
def built() -> Path:
    """Returns the wheel's file; its installation is in the same folder. Raises NotBuilt."""
    with locked("wheel", CACHE):
        if not any(folder().glob("*.whl")):
            for old in CACHE.glob("odradek-*"):
                remove_unless_in_use(old)
            pip("wheel", "--no-build-isolation", "--wheel-dir", str(folder()), str(ROOT))
    return next(folder().glob("*.whl"))


def remove_unless_in_use(old: Path) -> None:
    """Removes an older build, unless a broker runs from it."""
    with (old / IN_USE).open("a") as in_use:
        try:
            fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        shutil.rmtree(old)


@cache
def program() -> str:
    """Returns the `odradek` command of the installed wheel. Raises NotBuilt."""
    wheel = built()
    with locked("wheel", CACHE):
        if not launcher().exists():
            install(wheel, launcher())
    return str(launcher())


def keep() -> None:
    """Keeps later builds from removing this wheel until this process ends, because it imports modules when it first
    needs them.
    """
    in_use = os.open(folder() / IN_USE, os.O_RDWR | os.O_CREAT)
    fcntl.flock(in_use, fcntl.LOCK_SH)


@cache
def program_at(revision: str) -> str:
    """Returns the `odradek` command of a wheel of an earlier revision, which is kept. Raises NotBuilt."""
    commit = git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
    home = CACHE / f"earlier-{commit[:12]}"
    command = command_in(home)
    with locked(home.name, CACHE):
        if not command.exists():
            if not any(home.glob("*.whl")):
                shutil.rmtree(home, ignore_errors=True)
                with tarfile.open(fileobj=BytesIO(git("archive", commit))) as tree:
                    tree.extractall(home / "tree", filter="data")
                pip("wheel", "--no-build-isolation", "--wheel-dir", str(home), str(home / "tree"))
            install(next(home.glob("*.whl")), command)
    return str(command)


def install(wheel: Path, command: Path) -> None:
    """Installs a wheel into the folder of its command, which is created last. Raises NotBuilt."""
    target = command.parent
    shutil.rmtree(target, ignore_errors=True)  # pip would keep the files of an interrupted installation
    pip("install", "--target", str(target), str(wheel))
    made = command.with_suffix(".new")
    folders = [str(target)]
    if interpreter() != sys.executable:
        folders.append(sysconfig.get_path("purelib"))  # the wheel's dependencies
    made.write_text(LAUNCHER.format(python=interpreter(), folders=folders, in_use=str(target.parent / IN_USE)))
    made.chmod(0o755)
    made.rename(command)


def commit() -> str:
    """Returns the hash of the commit that is checked out. Raises NotBuilt."""
    return git("rev-parse", "HEAD").decode().strip()


def git(*arguments: str) -> bytes:
    """Runs git in the project and returns its output. Raises NotBuilt."""
    ended = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    if ended.returncode:
        reason = ended.stderr.decode(errors="replace").strip() or "there is no such revision here"
        raise NotBuilt(f"`git {' '.join(arguments)}` failed: {reason}")
    return ended.stdout


def pip(verb: str, *arguments: str) -> None:
    """Runs this Python's pip, without the wheel's dependencies. Raises NotBuilt."""
    command = [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", "--no-deps", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if ended.returncode:
        raise NotBuilt(f"`pip {verb}` of {ROOT.name} failed: {ended.stdout[-1000:]}{ended.stderr[-1000:]}")


@contextmanager
def sole_builder() -> Iterator[bool]:
    """Yields True if no other process builds in the background now."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / ".building").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def build_beside() -> None:
    """Starts a build at the lowest priority, and does not wait for it; errors go to LOG."""
    CACHE.mkdir(exist_ok=True)
    with LOG.open("a") as log:
        subprocess.Popen(
            BUILD, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            preexec_fn=lambda: os.nice(19),
        )  # fmt: skip


def command_to_run() -> str:
    """Returns the wheel's command. If there is no wheel of this tree yet, prints a line about that and returns the
    tree's own.
    """
    if launcher().exists():
        return str(launcher())
    build_beside()
    print(
        "make run: this start is pure Python. The compiled core is being built in the background, which takes a "
        f"minute or two ({LOG.relative_to(ROOT)}); the next start will use it.",
        file=sys.stderr,
    )
    return str(Path(sys.executable).with_name("odradek"))


def main(arguments: list[str]) -> int:
    if arguments != ["--build"]:
        print(command_to_run())
        return 0
    with sole_builder() as is_sole:
        if is_sole:
            program()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except NotBuilt as error:
        sys.exit(str(error))
