"""Runs the tests that the README and the first page of the docs show, as a new user would."""

from __future__ import annotations

import re

import pytest

from tests.interop.processes import ROOT

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.odradek_only


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_first_page(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    (text,) = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    pytester.makepyfile(test_orders=text)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = pytester.runpytest_subprocess("-p", "odradek.pytest_plugin", timeout=120)
    result.assert_outcomes(passed=1)
