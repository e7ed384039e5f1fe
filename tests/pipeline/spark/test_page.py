"""Runs the examples of docs/pipeline.md that have a prompt, and compares their output with the page's."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.main import main
from tests.interop.brokers import Broker
from tests.interop.processes import ROOT
from tests.pipeline.spark.records import activity, create


class Example(NamedTuple):
    """A command, and the lines that it prints, among others; … is any text."""

    command: str
    printed: list[str]


def examples() -> list[Example]:
    """Returns the examples of the page, in order."""
    found: list[Example] = []
    for line in re.findall(r"^    (.*)$", (ROOT / "docs" / "pipeline.md").read_text(), re.MULTILINE):
        if line.startswith("$ "):
            found.append(Example(line.removeprefix("$ "), []))
        elif found:
            found[-1].printed.append(line)
    return [example for example in found if example.command]


def matches(line: str, output: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in line.split("…"))
    return re.search(f"^ *{pattern}$", output, re.MULTILINE) is not None


@pytest.mark.usefixtures("spark")
@pytest.mark.timeout(900)
def test_the_examples_print_what_the_page_says(
    odradek: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    create(odradek, "clicks", 2)
    activity(odradek, "clicks", 1_000, partitions=2)
    variables: dict[str, str] = {}
    path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for example in examples():
        command = example.command.replace("127.0.0.1:9092", odradek.bootstrap)
        command = re.sub(r"\$(\w+)", lambda name: variables[name[1]], command).replace("./", f"{tmp_path}/")
        if assigned := re.fullmatch(r'(\w+)="(.*)"', command):
            variables[assigned[1]] = assigned[2]
        elif command.startswith("odradek pipeline"):
            assert main(shlex.split(command)[1:]) == 0, command
            output = capfd.readouterr().out
            assert all(matches(line, output) for line in example.printed), f"{command}\n{output}"
        else:
            subprocess.run(["bash", "-c", command], cwd=tmp_path, env={**os.environ, **path}, check=True)
