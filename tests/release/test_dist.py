"""Tests what a Python package of Odradek says about itself, and how `make dist` chooses interpreters."""

from __future__ import annotations

import json
import re
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from release import dist
from release.dist import ROOT, Failed, Interpreter
from tests.compiled.modules import compiled_modules
from tests.interop.processes import run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
METADATA = [sys.executable, "-m", "hatchling", "metadata"]
FORGE = "https://forge.example/odradek"


def fake_python(folder: Path, name: str, says: str) -> Path:
    """Makes a program that answers as an interpreter does."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return path


def test_one_cpython_of_each_version_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = [
        fake_python(tmp_path, "newer", "cpython 3 13 True"),
        fake_python(tmp_path, "older", "cpython 3 11 True"),
        fake_python(tmp_path, "second", "cpython 3 11 True"),
        fake_python(tmp_path, "too-old", "cpython 3 10 True"),
        fake_python(tmp_path, "without-headers", "cpython 3 12 False"),
        fake_python(tmp_path, "other", "pypy 3 12 True"),
        fake_python(tmp_path, "broken", "Segmentation fault"),
        tmp_path / "absent",
    ]
    monkeypatch.setenv("PYTHONS", " ".join(map(str, named)))
    assert dist.interpreters() == [Interpreter((3, 11), tmp_path / "older"), Interpreter((3, 13), tmp_path / "newer")]


def test_this_python_is_found_without_being_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONS", raising=False)
    assert sys.version_info[:2] in [interpreter.version for interpreter in dist.interpreters()]


def test_a_machine_without_a_cpython_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONS", str(tmp_path / "absent"))
    with pytest.raises(Failed, match="python3-dev"):
        dist.build()


@pytest.mark.parametrize(
    ("made", "pure", "is_right"),
    [("py3-none-any", True, True), ("py3-none-any", False, False), ("cp311-cp311-linux_x86_64", False, True)],
)
def test_a_wheel_without_its_core_fails_the_build(tmp_path: Path, made: str, pure: bool, is_right: bool) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    pip = f"'the wheel is pure Python, as gcc is missing'; touch {wheels}/odradek-0.1.0-{made}.whl"
    fake_python(programs, "python", pip)
    if is_right:
        assert dist.build_wheel(programs, ROOT, wheels, pure=pure).name == f"odradek-0.1.0-{made}.whl"
    else:
        with pytest.raises(Failed, match="gcc is missing"):
            dist.build_wheel(programs, ROOT, wheels, pure=pure)


def test_the_metadata_is_complete() -> None:
    metadata = json.loads(run(["env", "-u", "ODRADEK_SOURCE_URL", *METADATA]).stdout)
    assert metadata["license"] == "Apache-2.0"
    assert metadata["readme"]["text"] == (ROOT / "README.md").read_text()
    assert not metadata.get("urls")
    tested = {line.rsplit(" ", 1)[1] for line in metadata["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert min(tested, key=lambda text: int(text.split(".")[1])) == metadata["requires-python"].removeprefix(">=")


def test_a_forges_release_links_to_its_files() -> None:
    metadata = json.loads(run(["env", f"ODRADEK_SOURCE_URL={FORGE}/", *METADATA]).stdout)
    tag = f"v{metadata['version']}"
    assert metadata["urls"]["Changelog"] == f"{FORGE}/blob/{tag}/CHANGELOG.md"
    text = metadata["readme"]["text"]
    links = re.findall(r"(!?)\[[^]\n]*\]\(([^)]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    assert links
    for image, link in links:
        assert link.startswith(("https://", "#")), link
        assert not image or f"{FORGE}/raw/{tag}/" in link


def test_the_sdist_has_all_that_a_wheel_is_built_from(tmp_path: Path) -> None:
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)])
    (sdist,) = tmp_path.glob("odradek-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
        package_info = archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert package_info is not None
        assert b"\nLicense-File: LICENSE\n" in package_info.read()
    assert {"LICENSE", "README.md", "pyproject.toml", "hatch_build.py", "odradek/py.typed"} <= names
    assert set(compiled_modules()) <= names
    assert not [name for name in names if name.startswith(("tests/", "bench/", "docs/"))]


def test_the_workflow_runs_the_locked_cibuildwheel() -> None:
    (pinned,) = re.findall(r"^cibuildwheel==(\S+)", dist.LOCK.read_text(), re.MULTILINE)
    workflow = (ROOT / ".github" / "workflows" / "release.yaml").read_text()
    assert f"pypa/cibuildwheel@v{pinned}\n" in workflow
    assert PROJECT["tool"]["cibuildwheel"]["test-command"].startswith("python {project}/release/smoke.py ")
