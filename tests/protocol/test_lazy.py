"""Tests modules that are imported at their first use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from protocol.lazy import lazy


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that nothing has imported."""
    (tmp_path / "imported_lazily.py").write_text("LEVEL = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_lazily", raising=False)
    return "imported_lazily"


def test_a_module_is_imported_when_an_attribute_is_read(written: str) -> None:
    module = lazy(written)
    assert written not in sys.modules
    assert module.LEVEL == 3
    assert written in sys.modules


def test_a_replaced_attribute_is_read(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = lazy(written)
    assert module.LEVEL == 3
    monkeypatch.setattr(sys.modules[written], "LEVEL", 4)
    assert module.LEVEL == 4


def test_a_missing_module_is_missed_at_its_first_use() -> None:
    module = lazy("there_is_no_such_module")
    with pytest.raises(ModuleNotFoundError):
        _ = module.anything
