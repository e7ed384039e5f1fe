"""Installs the Debian package in a clean chroot, runs its broker, and purges it: `make test-deb` runs this."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from release.dist import DIST, ROOT
from tests.interop.chroots import SETUP_TIMEOUT_S, clean_system, files_of, inside, there_and_back
from tests.interop.processes import free_port, run

pytestmark = [pytest.mark.odradek_only, pytest.mark.release]


def test_the_package_is_installed_used_and_purged(tmp_path: Path) -> None:
    with clean_system(tmp_path) as root:
        install_use_and_purge(root, tmp_path)


def install_use_and_purge(root: Path, folder: Path) -> None:
    (package,) = DIST.glob("odradek_*.deb")
    shutil.copy(package, root / "tmp")
    shutil.copy(ROOT / "release" / "smoke.py", root / "tmp")
    before = files_of(root)
    system = inside(root)
    run([*system, "dpkg", "--install", f"/tmp/{package.name}"], timeout_s=SETUP_TIMEOUT_S)

    as_service = [*system, "chroot", "--userspec=odradek:odradek", "/"]
    run([*as_service, "env", "TMPDIR=/var/lib/odradek", "python3", "/tmp/smoke.py", "--compiled", "odradek"])
    follow_the_unit(as_service, folder)

    run([*system, "dpkg", "--remove", "odradek"])
    assert "var/lib/odradek/broker-1" in files_of(root), "records are not a package's to delete"
    assert "etc/odradek/broker-1.properties" in files_of(root)
    shutil.rmtree(root / "var/lib/odradek/broker-1")
    run([*system, "dpkg", "--purge", "odradek"])
    assert "odradek" not in (root / "etc/passwd").read_text() + (root / "etc/group").read_text()
    assert {name for name in files_of(root) - before if not name.startswith("etc/")} == set()
    assert {name for name in files_of(root) - before if "odradek" in name} == set()


def follow_the_unit(as_service: list[str], folder: Path) -> None:
    """Starts the broker as odradek-broker@1.service does, with kcat there and back."""
    port = free_port()
    words = ["odradek", "run", "/etc/odradek/broker-1.properties", "--set", f"listeners=PLAINTEXT://127.0.0.1:{port}"]
    there_and_back([*as_service, *words], folder)
