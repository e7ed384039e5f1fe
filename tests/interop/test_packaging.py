"""Tests the packages of the tree: a wheel with one import name, and the files of the image."""

from __future__ import annotations

import re
import signal
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.wheel import built, pip
from odradek.testing.ports import ReservedPort
from tests.interop.processes import ROOT, Server, run

pytestmark = pytest.mark.odradek_only


def serve(command: Sequence[str], where: Path, environment: dict[str, str]) -> tuple[Server, str]:
    """Runs a broker that was installed in some way; yields its address."""
    server = Server("installed odradek", where / "log")
    return server, server.launch(command, r"^ready (\S+:\d+)$", 30, environment, cwd=where)[1]


def is_healthy(target: str) -> bool:
    """Runs the image's health check for an address, or for the process of a broker."""
    probe = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-P", str(ROOT / "docker" / "healthy.py"), target]
    return run(probe, check=False).returncode == 0


INSIDE = {
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
}
COMPILED = "odradek/broker/network/listener.cpython"


def build_pure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ODRADEK_PURE", "1")
    pip("wheel", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    return next(folder.glob("odradek-*.whl"))


@pytest.mark.parametrize("pure", [False, True], ids=["compiled", "pure"])
def test_the_wheel_has_one_import_name_and_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pure: bool) -> None:
    wheel = build_pure(tmp_path, monkeypatch) if pure else built()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert {top for name in names if not (top := name.split("/")[0]).endswith(".dist-info")} == {"odradek"}
    assert any(name.startswith(COMPILED) for name in names) is not pure
    assert wheel.name.endswith("-py3-none-any.whl") is pure

    # Isolated from the tree: the unpacked wheel comes before all else on the path.
    program = f"import sys; sys.path[:0] = [{str(tmp_path / 'site')!r}]; import odradek; sys.exit(odradek.main())"
    command = [sys.executable, "-I", "-c", program]
    assert run([*command, "--version"]).stdout.endswith(b"(pure Python)\n" if pure else b"(compiled core)\n")
    server, bootstrap = serve(
        [*command, "run", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")], tmp_path, {}
    )
    assert is_healthy(bootstrap)
    assert ("pure Python" in server.log.read_text()) is pure
    assert server.stop() == 0
    server.forget()
    assert not is_healthy(bootstrap)


def test_a_core_that_cannot_be_compiled_is_left_out_and_the_reason_is_told(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = run(["env", "CC=/bin/false", *build])
    assert b"the wheel is pure Python" in done.stdout + done.stderr
    (wheel,) = tmp_path.glob("odradek-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:PORT"}, ()),
        ({"KAFKA_LISTENERS": "INSIDE://127.0.0.1:PORT", **INSIDE}, ()),
        ({"KAFKA_LISTENERS": "PLAINTEXT://127.0.0.1:1"}, ("--set", "listeners=PLAINTEXT://:PORT")),
        ({}, ("--listen", "127.0.0.1:PORT")),
    ],
    ids=["environment", "named", "assignment", "flag"],
)
def test_the_health_check_follows_the_listeners(
    tmp_path: Path, settings: dict[str, str], words: tuple[str, ...]
) -> None:
    port = ReservedPort()
    settings = {name: value.replace("PORT", str(port.number)) for name, value in settings.items()}
    command = [
        sys.executable,
        "-P",
        "-m",
        "odradek",
        "run",
        *(word.replace("PORT", str(port.number)) for word in words),
    ]
    own = {"PYTHONPATH": str(ROOT), "KAFKA_LOG_DIRS": str(tmp_path / "data"), **settings}
    server, _ = serve(command, tmp_path, own)
    assert re.search(r'"core": "pure Python .*"starting"', server.log.read_text())
    process = f"/proc/{server.pid}"
    assert is_healthy(process)
    server.signal(signal.SIGSTOP)
    assert not is_healthy(process)
    server.signal(signal.SIGCONT)
    assert server.stop() == 0
    server.forget()
    port.release()
