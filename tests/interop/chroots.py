"""A clean system for tests of what is released: a chroot of the Debian release that DEBIAN names, bookworm by default.

mmdebstrap makes it, or it is unpacked from the archive that CHROOT names. It has Python, and nothing of a developer's.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from release.image import SOURCES
from tests.interop.processes import Server, run

RELEASE = os.environ.get("DEBIAN", "bookworm")
PACKAGES = "python3,python3-venv,libstdc++6,passwd"
SETUP_TIMEOUT_S = 900
OF_THE_SYSTEM = ("var/lib/dpkg/", "var/log/", "tmp/", "proc/", "dev/")


def sources(folder: Path) -> list[str]:
    """Returns this machine's sources of packages, for the release; none if it has none, so that mmdebstrap's are
    used."""
    if not SOURCES.exists():
        return []
    file = folder / "release.sources"
    file.write_text(SOURCES.read_text().replace(platform.freedesktop_os_release()["VERSION_CODENAME"], RELEASE))
    return [str(file)]


@contextmanager
def clean_system(folder: Path) -> Iterator[Path]:
    """Yields the root of a new clean system, and removes it."""
    root = folder / "root"
    if archive := os.environ.get("CHROOT"):
        root.mkdir()
        run(["tar", "-C", str(root), "-xf", archive], timeout_s=SETUP_TIMEOUT_S)
    else:
        chosen = ["--variant=essential", f"--include={PACKAGES}", RELEASE, str(root)]
        run(["mmdebstrap", "--mode=root", *chosen, *sources(folder)], timeout_s=SETUP_TIMEOUT_S)
    try:
        yield root
    finally:
        shutil.rmtree(root)


def inside(root: Path) -> list[str]:
    """Returns the words that run a command in the system, without this process's environment."""
    return ["chroot", str(root), "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]


def files_of(root: Path) -> set[str]:
    """Returns every file and folder that an installation could leave behind; dpkg's own log and backups are its
    own."""
    names = {path.relative_to(root).as_posix() for path in root.rglob("*")}
    return {name for name in names if not name.startswith(OF_THE_SYSTEM)}


def there_and_back(command: list[str], folder: Path) -> None:
    """Starts a broker by a command that prints its ready line, and writes and reads a record with kcat."""
    server = Server("installed odradek", folder / "log")
    bootstrap = server.launch(command, r"^ready (\S+:\d+)$", 120, cwd=folder)[1]
    run(["kcat", "-b", bootstrap, "-t", "greetings", "-P"], stdin=b"hello\n")
    assert run(["kcat", "-b", bootstrap, "-t", "greetings", "-C", "-e", "-q"]).stdout == b"hello\n"
    assert server.stop() == 0
    server.forget()
