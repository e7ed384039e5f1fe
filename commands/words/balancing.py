"""`odradek cluster balance` and `cluster decommission`: replicas of all topics, moved between brokers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from cli.actions import Actions
from cli.exits import DONE, FAILED
from cli.flags import WAIT, YES, integer
from cli.parser import Parser
from commands.client.cluster_client import outcome
from commands.errors import CommandError, raise_if
from commands.printing import Row
from commands.session import Session
from commands.state.moves import POLL_MS, BrokerSet, Moves, balanced, in_progress, start, without
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.metadata import MetadataResponseTopic
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

COLUMNS: Final = ("topic", "partition", "replicas", "new")
NOT_YET: Final = "odradek: nothing was changed; --yes carries out the plan"

BALANCE_HELP: Final = """\
The plan spreads the replicas and the preferred leaders of all topics, internal ones included, evenly over the active
brokers, with as few moves as possible. Data is copied in the background; with --wait the command returns when all
replicas are in place."""

DECOMMISSION_HELP: Final = """\
The plan moves all replicas of a broker to the other active brokers. With --yes the command moves them, waits until the
broker has none left, and unregisters the broker, which must be stopped before that: the command asks for it, and waits.
It can be interrupted and repeated. A dead broker's replicas are copied from the others."""


def declare_balance(actions: Actions) -> None:
    actions.only(
        balance,
        options=_balance_options,
        examples=("odradek cluster balance", "odradek cluster balance --yes --wait 10m"),
        more=BALANCE_HELP,
    )


def declare_decommission(actions: Actions) -> None:
    actions.only(
        decommission,
        options=_decommission_options,
        examples=("odradek cluster decommission 4", "odradek cluster decommission 4 --yes --wait 2h"),
        more=DECOMMISSION_HELP,
    )


def _balance_options(parser: Parser) -> None:
    WAIT.add(parser, help="wait until the moves are done, at most this long")
    YES.add(parser, help="move the replicas, instead of showing the plan")


def _decommission_options(parser: Parser) -> None:
    parser.add_argument("broker", type=integer, metavar="BROKER", help="id of the broker")
    WAIT.add(parser, help="longest time for the moves, and for the broker's stop", default="1h")
    YES.add(parser, help="carry out the plan, instead of showing it")


async def balance(session: Session) -> int:
    """Shows the plan, and carries it out with --yes."""
    brokers = await _brokers(session)
    if brokers.fenced:
        raise CommandError(
            f"broker {min(brokers.fenced)} is not active: start it, or remove it with `odradek cluster decommission "
            f"{min(brokers.fenced)}`"
        )
    status, moves = await _carry_out(session, await _plan(session, lambda topics: balanced(topics, brokers)))
    if status == DONE and session.options.yes and moves and session.options.wait is not None:
        await _wait_for_moves(session, moves, session.options.wait)
    return status


async def decommission(session: Session) -> int:
    """Shows the plan. With --yes moves the replicas, waits, and unregisters the broker."""
    options, broker = session.options, session.options.broker
    brokers = await _brokers(session)
    if broker not in brokers.racks:
        raise CommandError(
            f"broker {broker}: not in the cluster; its brokers are {', '.join(map(str, sorted(brokers.racks)))}"
        )
    plan = await _plan(session, lambda topics: without(topics, broker, brokers))
    status, moves = await _carry_out(session, plan)
    if status == FAILED or not options.yes:
        return status
    await _wait_for_moves(session, moves, options.wait)
    if await _has_replicas(session, broker):
        raise CommandError(f"broker {broker} has replicas again; repeat the command")
    await _wait_for_stop(session, broker, options.wait)
    answer = await session.cluster.controller(UnregisterBrokerRequest(broker_id=broker), UnregisterBrokerResponse)
    raise_if(f"broker {broker}", answer.error_code, answer.error_message)
    session.output.note(f"odradek: broker {broker} is unregistered")
    return DONE


async def _brokers(session: Session) -> BrokerSet:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
    answer = await session.cluster.any(request, DescribeClusterResponse)
    raise_if("the cluster", answer.error_code, answer.error_message)
    return BrokerSet(
        {broker.broker_id for broker in answer.brokers if not broker.is_fenced},
        {broker.broker_id for broker in answer.brokers if broker.is_fenced},
        {broker.broker_id: broker.rack for broker in answer.brokers},
    )


async def _plan(session: Session, plan: Callable[[list[MetadataResponseTopic]], Moves]) -> Moves:
    """Returns the moves that `plan` chooses. Raises CommandError, also while other moves are in progress."""
    if moving := await in_progress(session.cluster):
        raise CommandError(
            f"{len(moving)} partitions are being moved, such as {min(moving)}: wait for them, or cancel them with "
            "`odradek topic reassign TOPIC --cancel --yes`"
        )
    try:
        return plan(await session.cluster.topics(None))
    except ValueError as error:
        raise CommandError(str(error)) from None


async def _carry_out(session: Session, moves: Moves) -> tuple[int, Moves]:
    """Shows a plan, and starts its moves with --yes. Returns the exit code, and the moves that were not rejected."""
    is_started = session.options.yes and bool(moves)
    errors = await start(session.cluster, moves) if is_started else {}
    result = "is being moved" if is_started else "would be moved"
    rows: list[Row] = [
        {
            "topic": place.topic,
            "partition": place.partition,
            "replicas": move.before,
            "new": move.after,
            **({"error": errors[place]} if place in errors else {"result": result}),
        }
        for place, move in sorted(moves.items())
    ]
    if rows:
        status = session.results(COLUMNS, rows)
    else:
        session.output.note("odradek: there is nothing to move")
        status = DONE
    if not session.options.yes:
        session.output.note(NOT_YET)
    return status, {place: move for place, move in moves.items() if place not in errors}


async def _wait_for_moves(session: Session, moves: Moves, timeout_ms: int) -> None:
    """Waits until the moves are done, and shows how many are left. Raises CommandError at the timeout."""

    async def left() -> int:
        ongoing = await outcome(in_progress(session.cluster))
        if isinstance(ongoing, CommandError):  # the controller moves, or its broker has just stopped
            return len(moves)
        return len(ongoing & moves.keys())

    await _wait(session, left, timeout_ms, lambda count: f"{count} of {len(moves)} partitions are still being moved")


async def _has_replicas(session: Session, broker: int) -> bool:
    topics = await session.cluster.topics(None)
    return any(broker in partition.replica_nodes for topic in topics for partition in topic.partitions)


async def _wait_for_stop(session: Session, broker: int, timeout_ms: int) -> None:
    """Waits until a broker is fenced: an active broker would register again at once."""

    async def is_active() -> int:
        return broker in (await _brokers(session)).active

    await _wait(session, is_active, timeout_ms, lambda _: f"broker {broker} has no replicas left: stop it now")


async def _wait(
    session: Session,
    left: Callable[[], Awaitable[int]],
    timeout_ms: int,
    describe: Callable[[int], str],
) -> None:
    """Waits until `left` returns 0. Notes each change. Raises CommandError at the timeout."""
    clock = session.cluster.clock
    deadline_ms, shown = clock.monotonic_ms() + timeout_ms, 0
    while count := await left():
        if count != shown:
            session.output.note(f"odradek: {describe(count)}")
            shown = count
        if clock.monotonic_ms() >= deadline_ms:
            raise CommandError(f"gave up after {timeout_ms // 1000} s: {describe(count)}; repeat the command")
        await session.cluster.pause(POLL_MS)
