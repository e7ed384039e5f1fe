"""Installs the Debian package in a clean chroot, runs its broker, and purges it: `make test-deb` runs this.

The chroot is made by mmdebstrap, or it is unpacked from the archive that CHROOT names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from release.dist import DIST, ROOT
from release.image import SOURCES
from tests.interop.processes import Server, free_port, run

pytestmark = [pytest.mark.odradek_only, pytest.mark.release]

SETUP_TIMEOUT_S = 900


@pytest.fixture
def chroot(tmp_path: Path) -> Iterator[Path]:
    """Makes a clean Debian with Python."""
    root = tmp_path / "root"
    if archive := os.environ.get("CHROOT"):
        root.mkdir()
        run(["tar", "-C", str(root), "-xf", archive], timeout_s=SETUP_TIMEOUT_S)
    else:
        packages = ["--variant=essential", "--include=python3,libstdc++6,passwd", "bookworm", str(root)]
        sources = [str(SOURCES)] if SOURCES.exists() else []
        run(["mmdebstrap", "--mode=root", *packages, *sources], timeout_s=SETUP_TIMEOUT_S)
    yield root
    shutil.rmtree(root)


def files_of(root: Path) -> set[str]:
    """Returns every file and folder that a package could leave behind; dpkg's own log and backups are its own."""
    names = {path.relative_to(root).as_posix() for path in root.rglob("*")}
    return {name for name in names if not name.startswith(("var/lib/dpkg/", "var/log/", "tmp/", "proc/", "dev/"))}


def test_the_package_is_installed_used_and_purged(chroot: Path, tmp_path: Path) -> None:
    (package,) = DIST.glob("odradek_*.deb")
    shutil.copy(package, chroot / "tmp")
    shutil.copy(ROOT / "release" / "smoke.py", chroot / "tmp")
    before = files_of(chroot)
    inside = ["chroot", str(chroot), "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
    run([*inside, "dpkg", "--install", f"/tmp/{package.name}"], timeout_s=SETUP_TIMEOUT_S)

    as_service = [*inside, "chroot", "--userspec=odradek:odradek", "/"]
    run([*as_service, "env", "TMPDIR=/var/lib/odradek", "python3", "/tmp/smoke.py", "--compiled", "odradek"])
    follow_the_unit(as_service, tmp_path)

    run([*inside, "dpkg", "--remove", "odradek"])
    assert "var/lib/odradek/broker-1" in files_of(chroot), "records are not a package's to delete"
    assert "etc/odradek/broker-1.properties" in files_of(chroot)
    shutil.rmtree(chroot / "var/lib/odradek/broker-1")
    run([*inside, "dpkg", "--purge", "odradek"])
    assert "odradek" not in (chroot / "etc/passwd").read_text() + (chroot / "etc/group").read_text()
    assert {name for name in files_of(chroot) - before if not name.startswith("etc/")} == set()
    assert {name for name in files_of(chroot) - before if "odradek" in name} == set()


def follow_the_unit(as_service: list[str], folder: Path) -> None:
    """Starts the broker as odradek-broker@1.service does, with kcat there and back."""
    port = free_port()
    server = Server("packaged odradek", folder / "log")
    words = ["odradek", "run", "/etc/odradek/broker-1.properties", "--set", f"listeners=PLAINTEXT://127.0.0.1:{port}"]
    bootstrap = server.launch([*as_service, *words], r"^ready (\S+:\d+)$", 120)[1]
    run(["kcat", "-b", bootstrap, "-t", "greetings", "-P"], stdin=b"hello\n")
    assert run(["kcat", "-b", bootstrap, "-t", "greetings", "-C", "-e", "-q"]).stdout == b"hello\n"
    assert server.stop() == 0
    server.forget()
