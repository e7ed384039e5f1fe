"""Parses the faults of control requests: the table of actions and their fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from programs.control.actions import Action, Delay, Disconnect, Drop, HalfAnswer, Refuse, Shuffle, Throttle
from programs.control.conditions import Conditions
from programs.control.fields import Fields, suggestion
from programs.control.http import RequestError
from programs.control.releases import RELEASES, latest_versions
from programs.control.request_view import name_of_api
from programs.control.versions import HIDDEN, LimitVersions
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode, error_code

MAX_DELAY_MS: Final = 24 * 3_600_000
MAX_SHORT: Final = (1 << 15) - 1
MAX_INT: Final = (1 << 31) - 1

API_NAMES: Final = {name_of_api(key): key for key in ApiKey}
KEYS: Final = {name.lower(): key for name, key in API_NAMES.items()} | {key.name.lower(): key for key in ApiKey}

GROUP_APIS: Final = frozenset(
    {
        ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH, ApiKey.TXN_OFFSET_COMMIT, ApiKey.OFFSET_DELETE, ApiKey.DESCRIBE_GROUPS,
        ApiKey.DELETE_GROUPS, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_DESCRIBE,
    }
)  # fmt: skip
TRANSACTION_APIS: Final = frozenset(
    {ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN}
)
COORDINATORS: Final = {
    "loading": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "moved": ErrorCode.NOT_COORDINATOR,
    "unavailable": ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def api_key(value: object) -> int:
    """Returns the key of an API, from its name or key. Raises RequestError."""
    key = KEYS.get(value.lower()) if isinstance(value, str) else value
    if isinstance(key, int) and not isinstance(key, bool) and key in ApiKey._value2member_map_:
        return int(key)
    shown = f'"{value}"' if isinstance(value, str) else repr(value)
    raise RequestError(400, f"api {shown} is unknown{suggestion(str(value), API_NAMES)}")


def error_code_named(value: object) -> ErrorCode:
    """Returns an error, from its name or code. Raises RequestError."""
    names = ErrorCode.__members__
    if isinstance(value, str) and value.upper() in names:
        return names[value.upper()]
    if isinstance(value, int) and not isinstance(value, bool) and value in ErrorCode._value2member_map_:
        return error_code(value)
    raise RequestError(400, f"error {value!r} is unknown{suggestion(str(value), names)}")


def conditions_in(fields: Fields) -> Conditions:
    """Returns the conditions in the fields. Raises RequestError."""
    conditions = Conditions(
        frozenset(fields.each_of("api", api_key)),
        fields.text("topic"),
        fields.number("partition", at_most=MAX_INT),
        fields.text("group"),
        fields.text("transactional_id"),
        fields.text("client_id"),
        fields.text("listener"),
    )
    if conditions.partition is not None and conditions.topic is None:
        raise RequestError(400, "partition needs topic")
    return conditions


def is_after(fields: Fields) -> bool:
    """True if the request is carried out before the fault acts."""
    return fields.choice("when", ("before", "after")) == "after"


def check_true(fields: Fields, name: str) -> None:
    """Raises RequestError if a flag is not true."""
    if fields.flag(name) is not True:
        raise fields.wrong(name, False, "true: DELETE removes a fault")


def _error(fields: Fields, conditions: Conditions) -> tuple[Action, Conditions]:
    (code,) = fields.each_of("error", error_code_named)[:1] or [ErrorCode.NONE]
    if code is ErrorCode.NONE:
        raise RequestError(400, "error is one error, such as NOT_LEADER_OR_FOLLOWER; NONE is none")
    return Refuse(code, is_after(fields)), conditions


def _delay(fields: Fields, conditions: Conditions) -> tuple[Action, Conditions]:
    return Delay(fields.number("delay_ms", at_most=MAX_DELAY_MS) or 0, is_after(fields)), conditions


def _disconnect(fields: Fields, conditions: Conditions) -> tuple[Action, Conditions]:
    check_true(fields, "disconnect")
    return Disconnect(is_after(fields)), conditions


def _drop(fields: Fields, conditions: Conditions) -> tuple[Action, Conditions]:
    check_true(fields, "drop")
    return Drop(is_after(fields)), conditions


def _half_answer(fields: Fields, conditions: Conditions) -> tuple[Action, Conditions]:
    check_true(fields, "half_answer")
    return HalfAnswer(), conditions


def _throttle(fields: Fields, conditions: Conditions) -> tuple[Action, Conditions]:
    return Throttle(fields.number("throttle_ms", at_least=1, at_most=MAX_INT) or 0), conditions


def _shuffle(fields: Fields, conditions: Conditions) -> tuple[Action, Conditions]:
    return Shuffle(fields.number("shuffle") or 0), conditions


def _max_version(fields: Fields, conditions: Conditions) -> tuple[Action, Conditions]:
    version = fields.number("max_version", at_least=HIDDEN, at_most=MAX_SHORT)
    if not conditions.apis or version is None:
        raise RequestError(400, 'max_version needs api, such as {"api": "Fetch", "max_version": 11}')
    return LimitVersions(dict.fromkeys(conditions.apis, version)), conditions._replace(apis=frozenset())


def _release(fields: Fields, conditions: Conditions) -> tuple[Action, Conditions]:
    release = fields.choice("release", RELEASES)
    if conditions.apis or release is None:
        raise RequestError(400, "release applies to all APIs; leave api out, or set max_version")
    return LimitVersions(latest_versions(release), hides_others=True, hides_features=True), conditions


def _coordinator(fields: Fields, conditions: Conditions) -> tuple[Action, Conditions]:
    state = fields.choice("coordinator", COORDINATORS)
    if state is None:
        raise fields.wrong("coordinator", state, f"one of {', '.join(COORDINATORS)}")
    apis = frozenset(map(int, GROUP_APIS | TRANSACTION_APIS))
    if state == "unavailable":
        apis |= {int(ApiKey.FIND_COORDINATOR)}
    narrowed = conditions._replace(apis=conditions.apis & apis if conditions.apis else apis)
    if not narrowed.apis:
        raise RequestError(
            400, "coordinator applies to requests that a coordinator answers, and api names none of them"
        )
    return Refuse(COORDINATORS[state], is_after(fields), of_coordinator=True), narrowed


ACTIONS: Final[dict[str, Callable[[Fields, Conditions], tuple[Action, Conditions]]]] = {
    "error": _error,
    "delay_ms": _delay,
    "disconnect": _disconnect,
    "drop": _drop,
    "half_answer": _half_answer,
    "throttle_ms": _throttle,
    "shuffle": _shuffle,
    "max_version": _max_version,
    "release": _release,
    "coordinator": _coordinator,
}
"""(fields, conditions) → the action, and its conditions."""

BROKER_ACTIONS: Final = ("disk_full", "no_leader", "move_leader")
"""The faults of the broker itself."""


def action_named(fields: Fields) -> str:
    """Returns the name of the only action in the fields. Raises RequestError."""
    names = [name for name in (*ACTIONS, *BROKER_ACTIONS) if name in fields]
    if len(names) != 1:
        what = f"{' and '.join(names)} are" if names else "no action is"
        raise RequestError(400, f"{what} given; a fault has one of {', '.join((*ACTIONS, *BROKER_ACTIONS))}")
    return names[0]
