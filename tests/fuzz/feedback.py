"""Learns names for the next requests from answers: sessions, member ids and epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.fuzz.vocabulary import Group, Member, Vocabulary

MOST_SESSIONS, MOST_MEMBERS = 8, 4
KEPT = 1
"""Number of sessions and members that are kept from the start of the world."""


def learn(vocabulary: Vocabulary, request: Any, answer: Any) -> None:
    """Adds the names in the answer to the vocabulary. Equal answers of two brokers have equal effects."""
    rule = RULES.get(type(request).__name__)
    if rule is not None and answer is not None:
        rule(vocabulary, request, answer)


def of_fetch(vocabulary: Vocabulary, request: Any, answer: Any) -> None:
    if answer.session_id and answer.session_id not in vocabulary.sessions:
        vocabulary.sessions.append(answer.session_id)
        del vocabulary.sessions[KEPT:-MOST_SESSIONS]


def of_join(vocabulary: Vocabulary, request: Any, answer: Any) -> None:
    if answer.member_id:
        seen(vocabulary, request.group_id, Member(answer.member_id, answer.generation_id, request.group_instance_id))


def of_heartbeat(vocabulary: Vocabulary, request: Any, answer: Any) -> None:
    if answer.error_code == 0 and answer.member_id:
        instance_id = getattr(request, "instance_id", None)
        seen(vocabulary, request.group_id, Member(answer.member_id, answer.member_epoch, instance_id))


def of_init(vocabulary: Vocabulary, request: Any, answer: Any) -> None:
    for one in vocabulary.transactionals:
        if one.name == request.transactional_id and answer.error_code == 0:
            one.producer_id, one.epoch = answer.producer_id, answer.producer_epoch


def of_end(vocabulary: Vocabulary, request: Any, answer: Any) -> None:
    if answer.error_code == 0 and answer.producer_id >= 0:
        of_init(vocabulary, request, answer)


def seen(vocabulary: Vocabulary, name: str, member: Member) -> None:
    group = next((group for group in vocabulary.groups if group.name == name), None)
    if group is None:
        vocabulary.groups.append(group := Group(name))
    for one in group.members:
        if one.member_id == member.member_id:
            one.epoch = member.epoch
            return
    group.members.append(member)
    del group.members[KEPT:-MOST_MEMBERS]


Rule = Callable[[Vocabulary, Any, Any], None]
RULES: Final[Mapping[str, Rule]] = {
    "FetchRequest": of_fetch,
    "JoinGroupRequest": of_join,
    "ConsumerGroupHeartbeatRequest": of_heartbeat,
    "ShareGroupHeartbeatRequest": of_heartbeat,
    "StreamsGroupHeartbeatRequest": of_heartbeat,
    "InitProducerIdRequest": of_init,
    "EndTxnRequest": of_end,
}
