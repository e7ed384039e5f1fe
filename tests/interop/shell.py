"""The small part of a shell's language that examples use: pipes, `>`, echo, printf, head, and programs."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from cli.main import main
from tests.interop.commanding import Fed


class Ended(NamedTuple):
    """The result of a program."""

    status: int
    out: bytes
    err: str = ""


Program = Callable[[list[str], bytes], Ended]


class Shell:
    """Runs lines in a folder, with programs by name."""

    def __init__(self, folder: Path, programs: Mapping[str, Program]) -> None:
        self._folder = folder
        self._programs = {"echo": echo, "printf": printf, "head": head, **programs}

    def run(self, line: str) -> Ended:
        """Runs a line; returns the result of its last program."""
        tokens = shlex.shlex(line, posix=True, punctuation_chars="|>")
        tokens.whitespace_split, tokens.commenters = True, ""
        stages: list[list[str]] = [[]]
        for token in tokens:
            if token == "|":
                stages.append([])
            else:
                stages[-1].append(token)
        target = None
        if ">" in stages[-1]:
            *stages[-1], _, target = stages[-1]
        ended = Ended(0, b"")
        for name, *words in stages:
            ended = self._programs[name](words, ended.out)
        if target is not None:
            (self._folder / target).write_bytes(ended.out)
        return ended


def echo(words: list[str], _: bytes) -> Ended:
    return Ended(0, " ".join(words).encode() + b"\n")


def printf(words: list[str], _: bytes) -> Ended:
    return Ended(0, words[0].replace("\\n", "\n").replace("\\t", "\t").encode())


def head(words: list[str], stdin: bytes) -> Ended:
    count = int(words[0].removeprefix("-"))
    return Ended(0, b"".join(stdin.splitlines(keepends=True)[:count]))


def odradek(bootstrap: str) -> Program:
    """Returns the program `odradek` for a cluster; it runs in this process."""

    def run(words: list[str], stdin: bytes) -> Ended:
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
        fed, before = Fed(), sys.stdin
        fed.content = stdin
        sys.stdin = fed  # as much of a file as commands want
        try:
            with redirect_stdout(out), redirect_stderr(err):
                status = _called(words, bootstrap)
        finally:
            sys.stdin = before
        out.flush()
        buffer = out.buffer
        assert isinstance(buffer, io.BytesIO)
        return Ended(status, buffer.getvalue(), err.getvalue())

    return run


def _called(words: list[str], bootstrap: str) -> int:
    try:
        return main(words if words[:1] == ["completion"] else [*words, "-b", bootstrap])
    except SystemExit as error:  # argparse ends the process
        return int(str(error.code))
