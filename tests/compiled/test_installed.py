"""Tests that `--installed` runs the tests against the installed wheel."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.compiled.modules import compiled_modules, module_name


@pytest.mark.parametrize("path", compiled_modules())
def test_the_tests_import_what_they_are_to_test(path: str, request: pytest.FixtureRequest) -> None:
    spec = find_spec(module_name(path))
    assert spec is not None
    assert spec.origin is not None
    assert spec.origin.endswith(".so") == request.config.getoption("--installed")
