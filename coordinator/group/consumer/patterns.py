"""Patterns that members subscribe with: matches them against the topics when needed, and applies the result.

Matching takes a while, so a decision only requests it; the broker matches in a thread and returns the result as another
decision. Until then the pattern matches what it did before, or nothing. Source: GroupMetadataManager's
maybeUpdateRegularExpressions and handleRegularExpressionsResult (KIP-848).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from coordinator.engine.result import Result, Ticket
from coordinator.group import regex
from coordinator.group.consumer import records
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member
from coordinator.group.modern.group import Checked, note_check
from coordinator.group.records import GroupResult
from coordinator.group.regex import UNRESOLVED, Resolved
from coordinator.group.state import Client, GroupState, MatchRequest

MIN_REFRESH_INTERVAL_MS: Final = 10_000
"""Minimum interval of matching, because topics may change faster than patterns can be matched against all of them."""

MATCHING_TIMEOUT_MS: Final = 60_000
"""Time without a result after which matching is requested again."""


class PatternChange(Enum):
    """The effect of a member's change on its group's patterns."""

    NONE = "none"
    CHANGED = "changed"
    CHANGED_AND_RESOLVED = "changed, and its topics are known"


def matching_key(group_id: str) -> tuple[str, str]:
    """Returns the key of the timer that runs while a group's patterns are matched."""
    return "patterns", group_id


def change_pattern(
    state: GroupState,
    group: ConsumerGroup,
    before: Member,
    after: Member,
    client: Client,
    result: GroupResult,
    now_ms: int,
) -> PatternChange:
    """Updates a member's pattern, and requests a match of the group's patterns if it is due. Raises
    INVALID_REGULAR_EXPRESSION."""
    change = PatternChange.NONE
    unknown = False
    patterns = group.subscriptions.patterns
    if before.regex != after.regex:
        change = PatternChange.CHANGED
        if before.regex and patterns[before.regex] == 1:
            result.records.append(records.regex_gone(group.group_id, before.regex))
        unknown = after.regex is not None and after.regex not in patterns
        if after.regex is not None and unknown:
            regex.check(after.regex)
        if not after.regex or after.regex in group.resolved:
            change = PatternChange.CHANGED_AND_RESOLVED
    if unknown or patterns:
        _match_if_due(state, group, before, after, unknown, client, result, now_ms)
    return change


def _match_if_due(
    state: GroupState,
    group: ConsumerGroup,
    before: Member,
    after: Member,
    unknown: bool,
    client: Client,
    result: GroupResult,
    now_ms: int,
) -> None:
    key = matching_key(group.group_id)
    last = next(iter(group.resolved.values()), None)
    if key in state.timers or (last and now_ms <= last.timestamp_ms + MIN_REFRESH_INTERVAL_MS):
        return
    subscriptions = group.subscriptions.copy()
    subscriptions.replace(before, after)
    patterns = tuple(subscriptions.patterns)
    due = (
        unknown
        or last is None
        or len(patterns) != len(group.resolved)
        or last.version < state.watch.newest_topic_at
        or now_ms > last.timestamp_ms + state.settings.group_consumer_regex_refresh_interval_ms
    )
    if due and patterns:
        result.effect(state.timers.set, key, now_ms + MATCHING_TIMEOUT_MS, lambda _now_ms: Result())
        request = MatchRequest(group.group_id, after.member_id, patterns, client)
        result.effect(state.environment.match_topics, request)


class Matched(NamedTuple):
    """The result of a MatchRequest: the topics that each pattern matched."""

    group_id: str
    resolved: Mapping[str, Resolved]


def patterns_matched(
    state: GroupState, matched: Matched, client: Client, ticket: Ticket[None], now_ms: int
) -> GroupResult:
    """Writes the topics of the patterns that members still subscribe with; changed topics bring a new epoch of the
    group."""
    result: GroupResult = Result()
    result.answer(ticket, None)
    result.effect(state.timers.cancel, matching_key(matched.group_id))
    group = state.groups.get(matched.group_id)
    if not isinstance(group, ConsumerGroup):
        return result
    subscriptions = group.subscriptions.copy()
    bump = False
    for pattern, resolved in matched.resolved.items():
        if pattern not in group.subscriptions.patterns:
            continue
        before = group.resolved.get(pattern, UNRESOLVED)
        if before.topics != resolved.topics:
            bump = True
            subscriptions.resolve(before.topics, resolved.topics)
        result.records.append(records.regex(group.group_id, pattern, resolved))
    metadata_hash = state.watch.group_hash(subscriptions.topics)
    if bump or metadata_hash != group.metadata_hash or _leaves_partitions_idle(state, group, matched):
        epoch = group.epoch + 1
        result.records.append(records.COMMON.epoch(group.group_id, epoch, metadata_hash))
        result.effect(note_check, state, group.group_id, Checked(state.watch.changes, epoch))
    return result


def _leaves_partitions_idle(state: GroupState, group: ConsumerGroup, matched: Matched) -> bool:
    """True if a member's new pattern doesn't match topics of its target. The member gave them up when it changed its
    pattern, and no member gets them before the next epoch. The change may cause no epoch: the new pattern may match
    nothing, while other members name these topics. (Apache Kafka 4.3 leaves such partitions idle.)"""
    topics = state.environment.topics
    for member in group.members.values():
        resolved = matched.resolved.get(member.regex or "")
        if resolved is not None and member.regex not in group.resolved:
            named = (topics.topic_by_id(topic_id) for topic_id in group.target(member.member_id))
            subscribed = member.topic_names | resolved.topics
            if any(topic is not None and topic.name not in subscribed for topic in named):
                return True
    return False
