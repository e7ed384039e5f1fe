"""Tests log lines: JSON for machines, readable for a terminal."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest

from broker.logging import ERROR, INFO, WARN, get_logger, readable


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_exception_is_a_field_of_the_json_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", written := io.StringIO())
    try:
        raise ValueError("it broke")
    except ValueError as error:
        get_logger("a").exception("a request failed", api="Fetch")
        get_logger("a").error("a request failed", exc_info=error, peer={1})
    first, second = map(json.loads, written.getvalue().splitlines())
    for line in (first, second):
        assert line["exception"].startswith("Traceback (most recent call last):\n")
        assert line["exception"].endswith("\nValueError: it broke")
        assert "exc_info" not in line
    assert (first["api"], first["level"], second["peer"]) == ("Fetch", "error", "{1}")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", first["timestamp"])


def test_an_exception_follows_the_readable_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stderr", written := Terminal())
    get_logger("listener").error("connection closed", exc_info=ValueError("it broke"), port=9092)
    line, *trace = written.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d \[error   \] connection closed +logger=listener port=9092", line)
    assert trace == ["ValueError: it broke"]


@pytest.mark.parametrize(("level", "colour"), [(INFO, None), (WARN, 33), (ERROR, 31)])
def test_the_levels_that_need_attention_have_a_colour(
    monkeypatch: pytest.MonkeyPatch, level: int, colour: int | None
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = readable(level, "something", {"broker": 1}, "")
    monkeypatch.setenv("NO_COLOR", "1")
    plain = readable(level, "something", {"broker": 1}, "")
    assert re.findall(r"\x1b\[(\d+)m", coloured) == ([] if colour is None else [str(colour), "0"])
    assert re.sub(r"\x1b\[\d+m", "", coloured)[8:] == plain[8:]
    assert "\x1b" not in plain
