"""Tests `odradek run --console`: a console beside the broker, which ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from broker.config.listeners import ListenerAddress
from programs.run.console_process import console_line
from protocol.config import ConfigError
from tests.console.browser import Browser

OPTIONS = ("--console", "--console-options", "--allow-changes --listen 127.0.0.1:0")


@contextmanager
def running_broker(path: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Runs a broker with a console, and yields its process and the console's URL."""
    line = [sys.executable, "-m", "odradek", "run", "--data", str(path), "--listen", "127.0.0.1:0", *OPTIONS, *words]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("ready 127.0.0.1:")
            yield process, process.stdout.readline().strip().removeprefix("ready ")
        finally:
            process.kill()


def is_gone(url: str) -> bool:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=1)
    try:
        connection.request("GET", "/login")
        connection.getresponse()
    except OSError:
        return True
    finally:
        connection.close()
    return False


def test_a_console_runs_beside_the_broker_and_ends_with_it(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as (process, url):
        browser = Browser(url.partition("/?")[0])
        assert "read–write" in browser.open("/?" + url.partition("?")[2]).words
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert is_gone(url)


def test_the_console_ends_when_the_broker_is_killed(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as (process, url):
        process.kill()
        process.wait(20)
        assert process.stdout is not None
        assert process.stdout.read() == ""  # the console has its other end
    assert is_gone(url)


def test_the_broker_does_not_start_without_the_packages(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nfrom importlib import util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'starlette' else find(name, *rest)\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    line = [sys.executable, "-m", "odradek", "run", "--data", str(tmp_path / "data"), "--console"]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=30, env={**os.environ, "PYTHONPATH": paths})
    assert ended.returncode == 1
    assert "needs starlette: pip install 'odradek[console]'" in ended.stderr


def listener(protocol: str, port: int) -> ListenerAddress:
    return ListenerAddress(protocol, "127.0.0.1", port, protocol)


def test_browsers_log_in_if_clients_authenticate() -> None:
    line = console_line([listener("SSL", 1), listener("SASL_PLAINTEXT", 2)], [])
    assert line[:6] == ["console", "--bootstrap", "127.0.0.1:2", "--set", "security.protocol=SASL_PLAINTEXT", "--login"]
    assert "--login" not in console_line([listener("SASL_PLAINTEXT", 2), listener("PLAINTEXT", 1)], [])


def test_a_broker_with_tls_only_has_no_console() -> None:
    with pytest.raises(ConfigError, match="truststore"):
        console_line([listener("SASL_SSL", 1)], [])
