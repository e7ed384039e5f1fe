"""Follows the README's first page as a new user would."""

from __future__ import annotations

import re

import pytest

from tests.interop.processes import ROOT

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.odradek_only


def test_the_first_page(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    pytester.makepyfile(test_orders=text)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = pytester.runpytest_subprocess("-p", "odradek.pytest_plugin", timeout=120)
    result.assert_outcomes(passed=1)
