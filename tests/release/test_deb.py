"""Tests the layout of the Debian package, without the wheels that are in it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from broker.config.sources import from_file, load
from release import deb
from release.library import version
from tests.interop.processes import run


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Builds a package whose library is one module."""
    if not shutil.which("dpkg-deb"):
        pytest.fail("dpkg-deb is part of the machines that build releases")
    monkeypatch.setattr(deb, "DIST", tmp_path)
    monkeypatch.setattr(deb, "install_library", lambda _, folder: deb.write(folder, "odradek/__init__.py", ""))
    deb.build()
    (package,) = tmp_path.glob("odradek_*.deb")
    return package


def test_the_package_has_the_command_the_units_and_the_options(package: Path) -> None:
    listed = run(["dpkg-deb", "--contents", str(package)]).stdout.decode()
    modes = {line.split()[5]: (line.split()[0], line.split()[1]) for line in listed.splitlines()}
    assert modes["./usr/bin/odradek"] == ("-rwxr-xr-x", "root/root")
    assert modes["./etc/odradek/"][0] == "drwxr-x---"
    assert modes["./etc/odradek/broker-1.properties"][0] == "-rw-r-----"
    assert modes["./usr/"][0] == "drwxr-xr-x"
    units = {name.rpartition("/")[2] for name in modes if name.endswith(".service")}
    names = ("broker@", "cluster", "controller", "node")
    assert units == {f"odradek-{name}.service" for name in names}


def test_the_package_depends_on_the_python_that_its_core_was_compiled_for(package: Path) -> None:
    fields = run(["dpkg-deb", "--field", str(package)]).stdout.decode()
    assert "python3 (>= 3.11), python3 (<< 3.12)" in fields
    assert re.search(rf"^Version: {re.escape(version())}$", fields, re.MULTILINE)
    control = run(["dpkg-deb", "--info", str(package), "conffiles"]).stdout.decode()
    assert control == "/etc/odradek/broker-1.properties\n"


@pytest.mark.parametrize("name", ["postinst", "prerm", "postrm"])
def test_a_script_can_be_parsed(package: Path, name: str) -> None:
    script = run(["dpkg-deb", "--info", str(package), name]).stdout
    assert script.startswith(b"#!/bin/sh\nset -e\n")
    run(["sh", "-n"], stdin=script)


def test_the_options_of_the_first_broker_are_valid() -> None:
    path = deb.SCRIPTS / "broker-1.properties"
    loaded = load(from_file(str(path), path.read_text()))
    assert not loaded.unused
    assert [host for _, host, *_ in loaded.config.bound_listeners] == ["127.0.0.1"]
