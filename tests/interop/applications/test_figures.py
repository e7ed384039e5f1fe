"""The file of the applications' figures."""

from __future__ import annotations

from pathlib import Path

from tests.interop.applications.figures import AT_LEAST_ONCE, EXACTLY_ONCE, Figures, keep, load

COPY = Figures("copier", "copy", EXACTLY_ONCE, 10, 10, "program, broker")


def test_figures_replace_those_of_the_same_application_only(tmp_path: Path) -> None:
    file = tmp_path / "applications.json"
    assert load(file) == []
    tasks = Figures("Tasks", "tasks", AT_LEAST_ONCE, 10, 12, "broker")
    keep(tasks, 1.4, file)
    keep(COPY._replace(received=11), 2, file)
    keep(COPY, 3.6, file)
    assert [(row.figures, row.seconds) for row in load(file)] == [(COPY, 4), (tasks, 1)]
