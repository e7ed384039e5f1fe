"""Tests the measurement of other clients' waits: its requests, and that all of its places answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.dispatch.api import Apis
from broker.handlers import APIS
from broker.handlers.controller import CONTROLLER_APIS
from tests.fuzz.compared import CONTROLLERS, ROWS, Row, acknowledgement, table
from tests.fuzz.crowding import PLACES, RIGHTS, measured, requests

COUNT = 3


@pytest.mark.parametrize("apis", [APIS, CONTROLLER_APIS], ids=["broker", "controller"])
def test_every_version_that_is_served_is_measured(apis: Apis) -> None:
    newest = {(many.request, many.version) for many in requests(apis, set(), all_versions=False)}
    everything = {(many.request, many.version) for many in requests(apis, set(), all_versions=True)}
    assert newest < everything
    for api in apis:
        versions = [version for request, version in everything if request is api.request]
        assert all(api.versions.first <= version <= api.versions.last for version in versions)
        assert [version for request, version in newest if request is api.request] in ([], [api.versions.last])


@pytest.mark.parametrize("place", PLACES)
def test_each_place_answers_while_others_ask(place: str, tmp_path: Path) -> None:
    """A client without rights gets another answer."""
    with PLACES[place](tmp_path / "data") as at:
        (many, *_) = requests(at.apis, {"CREATE_TOPICS"}, all_versions=False)
        waits = [measured(at, many, COUNT, rights) for rights in RIGHTS]
    permitted, denied = (wait.outcome for wait in waits)
    assert permitted.endswith(" bytes")
    assert denied.endswith(" bytes")
    assert permitted != denied
    assert all(wait.longest_s > 0 for wait in waits)


def test_both_brokers_are_compared() -> None:
    """The table names the request, and has the waits, their ratio and the processor times."""
    acknowledging = Row("ShareAcknowledge", acknowledgement(100))
    *_, first, second, _, note = table([acknowledging, *(row for row in ROWS if row.places is CONTROLLERS)], 1)
    for line, name in ((first, "ShareAcknowledge"), (second, "BrokerRegistration")):
        _, request, rights, *figures, _ = line.split("|")
        assert (name in request, rights.strip()) == (True, "with")
        assert len([float(figure) for figure in figures]) == 5
    assert note.startswith("Commit ")
