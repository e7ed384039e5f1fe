"""Tests that a plain installation, without the packages of its extras, serves every API and metrics."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("google", "opentelemetry", "jwt", "cryptography", "gssapi", "kazoo", "pyspark"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())

import broker.metrics.endpoint, broker.telemetry.telemetry, programs.run.controller_server, programs.run.server
from broker.handlers import APIS
from broker.handlers.controller import CONTROLLER_APIS

print(len([*APIS]), len([*CONTROLLER_APIS]))
"""


def test_no_package_of_an_extra_is_needed_to_serve() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    assert [int(count) > 0 for count in ended.stdout.split()] == [True, True]
