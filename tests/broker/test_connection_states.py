"""Tests the phases of a connection and its pause reasons, without an event loop."""

from __future__ import annotations

import pytest

from broker.network.states import (
    ANSWER,
    COMMIT,
    MAY_FOLLOW,
    PEER,
    PLACE,
    REASONS_OF,
    ROOM,
    THROTTLED,
    TURN,
    Phase,
    ServingState,
)

ENDS = [Phase.LINGERING, Phase.CLOSING, Phase.CLOSED]


def in_phase(*phases: Phase) -> ServingState:
    state = ServingState()
    for phase in phases:
        state.enter(phase)
    return state


def test_every_phase_has_its_followers_and_its_reasons() -> None:
    assert MAY_FOLLOW.keys() == REASONS_OF.keys() == set(Phase)


def test_every_phase_can_be_reached_and_only_a_closed_connection_stays() -> None:
    assert set().union(*MAY_FOLLOW.values()) == set(Phase) - {Phase.NEW}
    assert [phase for phase, followers in MAY_FOLLOW.items() if not followers] == [Phase.CLOSED]


def test_an_admitted_connection_is_read_and_answered() -> None:
    state = in_phase(Phase.OPEN)
    assert state.reads
    assert state.answers


def test_a_connection_that_waits_for_its_place_is_neither_read_nor_answered() -> None:
    state = in_phase(Phase.WAITING)
    assert not state.reads
    assert not state.answers
    state.enter(Phase.OPEN)
    assert state.reads
    assert state.answers


@pytest.mark.parametrize("phase", ENDS)
def test_an_ended_connection_answers_nothing_whatever_is_over(phase: Phase) -> None:
    state = in_phase(Phase.OPEN, phase)
    assert state.has_ended
    state.reasons &= ~(ANSWER | COMMIT | PEER | PLACE | ROOM | THROTTLED | TURN)
    assert not state.answers


@pytest.mark.parametrize("phase", ENDS)
def test_an_ended_connection_does_not_start(phase: Phase) -> None:
    state = in_phase(Phase.WAITING, phase)
    with pytest.raises(AssertionError, match=rf"a connection that is {phase.value} cannot be open"):
        state.enter(Phase.OPEN)
    assert state.phase is phase


def test_a_rejected_connection_was_never_open() -> None:
    state = in_phase(Phase.CLOSING)
    with pytest.raises(AssertionError, match="closing cannot be lingering"):
        state.enter(Phase.LINGERING)


def test_a_closing_connection_can_be_cut_off_and_lost_once() -> None:
    state = in_phase(Phase.OPEN, Phase.CLOSING, Phase.CLOSING, Phase.CLOSED)
    with pytest.raises(AssertionError, match="closed cannot be closed"):
        state.enter(Phase.CLOSED)


def test_reasons_other_than_the_phase_outlast_it() -> None:
    state = in_phase(Phase.WAITING)
    state.reasons |= TURN | PEER
    state.enter(Phase.OPEN)
    assert state.reasons == TURN | PEER


@pytest.mark.parametrize(
    ("reason", "reads", "answers"),
    [
        (ANSWER, True, False),
        (COMMIT, True, True),
        (PEER, True, False),
        (ROOM, False, True),
        (THROTTLED, False, False),
        (TURN, False, True),
    ],
)
def test_a_reason_pauses_reading_or_answering(reason: int, reads: bool, answers: bool) -> None:
    state = in_phase(Phase.OPEN)
    state.reasons |= reason
    assert (state.reads, state.answers) == (reads, answers)
