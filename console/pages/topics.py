"""The list of topics, and the page of one topic with its partitions, configs and groups."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final

from starlette.responses import Response

from commands.client.cluster_client import ClusterClient, outcome
from commands.errors import CommandError, misuse
from commands.printing import Row, error_of
from commands.records.positions import bounds, parse_position, resolve
from commands.session import assignments
from commands.state.configs import (
    DELETE,
    SET,
    ConfigChange,
    ConfigOwner,
    ResourceKind,
    alter_configs,
    config_row,
    describe_configs,
    is_own,
)
from commands.state.moves import alter_replicas, brokers_of, copied_shares, ongoing
from commands.state.replica_plan import spread
from commands.state.topic_changes import create_topics, delete_records, delete_topics, grow_topic
from commands.state.transactions import producer_rows
from console.changes import Plan
from console.pages.tables import Column, Table, table_of
from console.rendering import address, event
from console.visit import EVERY_MS, FIRST_MS, PageRequest
from console.watching import UNREADABLE, reason_of, topic_rows
from protocol.messages.describe_configs import DescribeConfigsResourceResult
from protocol.messages.metadata import MetadataResponseTopic
from protocol.types import TopicPartition, uuid_to_text

COLUMNS: Final = (
    Column("topic", "Topic"),
    Column("partitions", "Partitions", True),
    Column("replicas", "Replicas", True),
    Column("behind", "Behind", True),
    Column("records", "Records", True),
    Column("rate", "Records/s", True),
    Column("bytes", "Size", True),
    Column("lag", "Slowest group", True),
)

PRODUCER_COLUMNS: Final = (
    Column("producer", "Producer", True),
    Column("partition", "Partition", True),
    Column("epoch", "Epoch", True),
    Column("last_sequence", "Last sequence", True),
    Column("last_write_ms", "Last write (UTC)"),
    Column("start_offset", "Transaction since"),
)

TABS: Final = (
    ("records", "Records"),
    ("partitions", "Partitions"),
    ("configs", "Configs"),
    ("groups", "Groups"),
    ("producers", "Producers"),
    ("operations", "Operations"),
)


async def listing(visit: PageRequest) -> Response:
    await visit.watched.ready(FIRST_MS)
    return visit.render("topics.html", _values(visit))


async def live(visit: PageRequest) -> Response:
    return visit.live("topics", lambda: None if visit.watched.sample is None else _values(visit))


def _values(visit: PageRequest) -> dict[str, object]:
    return {"table": _table(visit), "is_read": visit.watched.sample is not None}


def _table(visit: PageRequest) -> Table:
    internal = visit.query("internal")
    rows = [row for row in topic_rows(visit.watched) if internal or not row["internal"]]
    return table_of(visit, "/topics", COLUMNS, rows, kept={"internal": internal})


# One topic.


async def topic_head(visit: PageRequest, tab: str) -> tuple[MetadataResponseTopic, dict[str, object]]:
    """Returns a topic, and the values of the head of its pages. Raises CommandError if it doesn't exist."""
    topic = await visit.cluster.topic(visit.path("topic"))
    name = topic.name or ""
    rows = [row for row in topic_rows(visit.watched) if row["topic"] == name]
    values = {"topic": name, "id": uuid_to_text(topic.topic_id), "tab": tab, "tabs": TABS}
    return topic, {**values, "facts": rows[0] if rows else {}}


async def partitions(visit: PageRequest) -> Response:
    topic, head = await topic_head(visit, "partitions")
    return visit.render("topic_partitions.html", {**head, **await _partition_values(visit, topic)})


async def live_partitions(visit: PageRequest) -> Response:
    """Returns the stream of the partitions, with the progress of reassignments."""
    name = visit.path("topic")
    await visit.cluster.topic(name)

    async def events() -> AsyncGenerator[str, None]:
        while True:
            await visit.watched.renewed(EVERY_MS)
            visit.watched.look()
            await visit.breathe()
            try:
                values = await _partition_values(visit, await visit.cluster.topic(name))
            except UNREADABLE as error:
                yield event("partitions", visit.text("topic_unread.html", {"error": reason_of(error)}))
                continue
            yield event("partitions", visit.text("topic_partitions_live.html", {"topic": name, **values}))

    return visit.stream(events())


async def _partition_values(visit: PageRequest, topic: MetadataResponseTopic) -> dict[str, object]:
    """Returns the rows of the partitions, and the progress of their reassignments."""
    places = [TopicPartition(topic.name or "", part.partition_index) for part in topic.partitions]
    limits = await bounds(visit.cluster, places)
    moving = await outcome(ongoing(visit.cluster, topic))
    problem = moving.message if isinstance(moving, CommandError) else ""
    moves: Mapping[TopicPartition, Row] = {} if isinstance(moving, CommandError) else moving
    copied = await copied_shares(visit.cluster, topic, moves) if moves else {}
    rows: list[Row] = []
    for part, place in zip(topic.partitions, places, strict=True):
        start, end = limits.starts.get(place), limits.ends.get(place)
        rows.append(
            {
                "partition": part.partition_index,
                "leader": part.leader_id if part.leader_id >= 0 else None,
                "epoch": part.leader_epoch,
                "replicas": [(node, node in part.isr_nodes) for node in part.replica_nodes],
                "start": start,
                "end": end,
                "records": None if start is None or end is None else end - start,
                "move": moves.get(place),
                "copied": copied.get(place),
                **error_of(limits.errors.get(place)),
            }
        )
    return {"rows": rows, "moving": len(moves), "move_problem": problem}


async def configs(visit: PageRequest) -> Response:
    topic, head = await topic_head(visit, "configs")
    described = await describe_configs(visit.cluster, _owner(topic.name or ""), documentation=True)
    search, edit = visit.query("q").lower(), visit.query("edit")
    rows = [
        {**config_row(config), "own": is_own(config), "documentation": config.documentation}
        for config in sorted(described, key=lambda config: (not is_own(config), config.name))
        if search in config.name.lower()
    ]
    edited = next((row for row in rows if row["config"] == edit), None)
    return visit.render("topic_configs.html", {**head, "rows": rows, "search": search, "edited": edited})


async def groups(visit: PageRequest) -> Response:
    await visit.watched.ready(FIRST_MS)
    _, head = await topic_head(visit, "groups")
    rows: list[Row] = []
    for facts in visit.watched.sample.groups if visit.watched.sample is not None else ():
        lags = [lag for place, lag in facts.lags.items() if place.topic == head["topic"]]
        readers = {
            member.member
            for member in facts.group.members
            for place in member.partitions
            if place.topic == head["topic"]
        }
        if lags or readers:
            rows.append(
                {
                    "group": facts.group.group,
                    "type": facts.group.type,
                    "state": facts.group.state,
                    "members": len(readers),
                    "lag": sum(lags) if lags else None,
                }
            )
    rows.sort(key=lambda row: -int(str(row["lag"] or 0)))
    return visit.render("topic_groups.html", {**head, "rows": rows})


async def producers(visit: PageRequest) -> Response:
    topic, head = await topic_head(visit, "producers")
    rows = await producer_rows(visit.cluster, topic, skip_leaderless=True)
    table = table_of(visit, address(f"/topics/{topic.name}/producers"), PRODUCER_COLUMNS, rows)
    return visit.render("topic_producers.html", {**head, "table": table})


async def operations(visit: PageRequest) -> Response:
    _, head = await topic_head(visit, "operations")
    return visit.render("topic_operations.html", head)


async def creation(visit: PageRequest) -> Response:
    return visit.render("topic_create.html", {"name": visit.query("topic")})


# Changes.


def _owner(topic: str) -> ConfigOwner:
    return ConfigOwner(ResourceKind.TOPIC, topic)


def _count(visit: PageRequest, name: str, *, required: bool = False) -> int:
    """Returns a number of partitions or replicas of the form; -1 if the field is empty. Raises CommandError."""
    text = visit.field(name, required=required)
    if text and not (text.isascii() and text.isdecimal() and 0 < int(text) < 1 << 31):
        raise misuse(f"{name} {text[:40]}: expected a whole number from 1")
    return int(text) if text else -1


def _checked(rows: Sequence[Row]) -> Sequence[Row]:
    """Returns the rows of a dry run. Raises CommandError if the cluster would reject the change."""
    for row in rows:
        if row.get("error"):
            raise CommandError(str(row["error"]))
    return rows


async def create(visit: PageRequest) -> Plan:
    """Plans a new topic."""
    name = visit.field("topic")
    count, replicas = _count(visit, "partitions"), _count(visit, "replicas")
    lines = [line.strip() for line in visit.field("configs", required=False).splitlines() if line.strip()]
    settings = assignments(lines, "configs")

    async def carry_out(*, dry_run: bool = False) -> Sequence[Row]:
        return await create_topics(
            visit.cluster,
            [name],
            partitions=count,
            replicas=replicas,
            assigned={},
            configs=settings,
            dry_run=dry_run,
            if_not_exists=False,
        )

    rows = _checked(await carry_out(dry_run=True))
    words = ["odradek", "topic", "create", name]
    words += ["-p", str(count)] if count > 0 else []
    words += ["-r", str(replicas)] if replicas > 0 else []
    for key, value in settings.items():
        words += ["-c", f"{key}={value}"]
    return Plan(
        "topic.create",
        name,
        f"Create topic {name}",
        carry_out,
        address(f"/topics/{name}"),
        ("topic", "partitions", "replicas", "configs"),
        [{**row, "configs": settings} for row in rows],
        words,
    )


async def alter(visit: PageRequest) -> Plan:
    """Plans a change of one config."""
    topic, name = visit.path("topic"), visit.field("config")
    before = next(
        (config for config in await describe_configs(visit.cluster, _owner(topic)) if config.name == name), None
    )
    if before is None:
        raise misuse(f"{name[:60]}: a topic has no such config")
    unsets = bool(visit.field("unset", required=False))
    value = None if unsets else visit.field("value", required=False)
    changes = [ConfigChange(name, DELETE if unsets else SET, value)]

    async def carry_out() -> Sequence[Row]:
        return [await alter_configs(visit.cluster, _owner(topic), changes)]

    _checked([await alter_configs(visit.cluster, _owner(topic), changes, dry_run=True)])
    shown = config_row(before)
    return Plan(
        "topic.alter",
        topic,
        f"Change {name} of topic {topic}",
        carry_out,
        address(f"/topics/{topic}/configs"),
        ("config", "before", "source", "after"),
        [{"config": name, "before": shown["value"], "source": shown["source"], "after": _after(before, value)}],
        ["odradek", "topic", "alter", topic, *(["--unset", name] if unsets else ["-c", f"{name}={value}"])],
    )


def _after(before: DescribeConfigsResourceResult, value: str | None) -> str:
    """Returns the value of a config after a change; without a new value the topic's own is unset, and the next source
    counts."""
    if value is not None:
        return value
    inherited = before.synonyms[1:] if is_own(before) else before.synonyms
    return f"{inherited[0].value} (from {inherited[0].name})" if inherited else "(the default)"


async def grow(visit: PageRequest) -> Plan:
    """Plans more partitions."""
    topic, count = visit.path("topic"), _count(visit, "partitions", required=True)
    before = len((await visit.cluster.topic(topic)).partitions)

    async def carry_out(*, dry_run: bool = False) -> Sequence[Row]:
        return [await grow_topic(visit.cluster, topic, count, dry_run=dry_run)]

    _checked(await carry_out(dry_run=True))
    return Plan(
        "topic.grow",
        topic,
        f"Grow topic {topic}",
        carry_out,
        address(f"/topics/{topic}"),
        ("topic", "before", "after"),
        [{"topic": topic, "before": before, "after": count}],
        ["odradek", "topic", "grow", topic, "-p", str(count)],
        typed=topic,
        note="New records of a key may go to another partition than its old ones.",
    )


async def reassign(visit: PageRequest) -> Plan:
    """Plans new replicas of a topic's partitions, spread over the given brokers, or of one partition."""
    name = visit.path("topic")
    topic = await visit.cluster.topic(name)
    current = {part.partition_index: list(part.replica_nodes) for part in topic.partitions}
    text, replicas = visit.field("brokers"), _count(visit, "replicas")
    brokers = brokers_of(f"brokers {text[:60]}", text, "expected BROKER,BROKER…, such as 1,2")
    try:
        wishes = spread(current, brokers, replicas if replicas > 0 else None)
    except ValueError as error:
        raise misuse(f"brokers {text[:60]}: {error}") from None
    plan: dict[TopicPartition, list[int] | None] = {
        TopicPartition(name, index): after for index, after in wishes.items() if after != current[index]
    }
    if not plan:
        raise CommandError(f"topic {name}: nothing to change, its replicas are on these brokers")
    words = ["odradek", "topic", "reassign", name, "--to-brokers", ",".join(map(str, brokers))]
    words += ["-r", str(replicas)] if replicas > 0 else []
    return Plan(
        "topic.reassign",
        name,
        f"Reassign topic {name}",
        lambda: _altered(visit.cluster, plan),
        address(f"/topics/{name}"),
        ("partition", "replicas", "new"),
        [{"partition": at.partition, "replicas": current[at.partition], "new": plan[at]} for at in sorted(plan)],
        [*words, "--yes"],
        note="Data is copied in the background; old replicas are deleted once the new ones are in sync.",
    )


async def cancel_reassign(visit: PageRequest) -> Plan:
    """Plans the end of a topic's reassignments: the replicas stay where they were."""
    name = visit.path("topic")
    moves = await ongoing(visit.cluster, await visit.cluster.topic(name))
    if not moves:
        raise CommandError(f"topic {name}: nothing is being moved any longer")
    plan: dict[TopicPartition, list[int] | None] = dict.fromkeys(moves)
    return Plan(
        "topic.reassign.cancel",
        name,
        f"Cancel the reassignment of topic {name}",
        lambda: _altered(visit.cluster, plan),
        address(f"/topics/{name}"),
        ("partition", "replicas", "adding", "removing"),
        [moves[place] for place in sorted(moves)],
        ["odradek", "topic", "reassign", name, "--cancel", "--yes"],
    )


async def _altered(cluster: ClusterClient, plan: Mapping[TopicPartition, list[int] | None]) -> Sequence[Row]:
    errors = await alter_replicas(cluster, plan)
    return [{"partition": place.partition, **error_of(errors.get(place))} for place in sorted(plan)]


async def trim(visit: PageRequest) -> Plan:
    """Plans the deletion of the oldest records."""
    name, text = visit.path("topic"), visit.field("to")
    try:
        position = parse_position(text, visit.cluster.clock.now_ms())
    except ValueError as error:
        raise misuse(f"to: {error}") from None
    topic = await visit.cluster.topic(name)
    places = [TopicPartition(name, part.partition_index) for part in topic.partitions]
    before = await bounds(visit.cluster, places)
    given = _given_offsets(visit.form)
    offsets, errors = await resolve(visit.cluster, dict.fromkeys(places, position))
    if errors:
        raise CommandError("; ".join(f"{place}: {error}" for place, error in errors.items()))
    targets = given or {place.partition: at for place, at in offsets.items()}

    async def carry_out() -> Sequence[Row]:
        return await delete_records(visit.cluster, topic, targets)

    return Plan(
        "topic.trim",
        name,
        f"Delete records of topic {name}",
        carry_out,
        address(f"/topics/{name}"),
        ("partition", "start", "new_start", "deleted"),
        [
            {
                "partition": place.partition,
                "start": before.starts.get(place),
                "new_start": targets[place.partition],
                "deleted": max(targets[place.partition] - before.starts.get(place, 0), 0),
            }
            for place in places
            if place.partition in targets
        ],
        ["odradek", "topic", "trim", name, "--to", text, "--yes"],
        typed=name,
        fields={f"offset-{index}": str(at) for index, at in targets.items()},
    )


def _given_offsets(form: Mapping[str, str]) -> dict[int, int]:
    """Returns the offsets of a form that was shown before, by partition. Raises CommandError."""
    offsets: dict[int, int] = {}
    for name, value in form.items():
        if name.startswith("offset-"):
            index = name.removeprefix("offset-")
            if not (index.isdecimal() and value.isdecimal() and len(index) < 10 and len(value) < 20):
                raise misuse(f"{name[:40]}: expected an offset")
            offsets[int(index)] = int(value)
    return offsets


async def delete(visit: PageRequest) -> Plan:
    """Plans the deletion of a topic."""
    name = visit.path("topic")
    topic = await visit.cluster.topic(name)

    async def carry_out() -> Sequence[Row]:
        return await delete_topics(visit.cluster, [name])

    return Plan(
        "topic.delete",
        name,
        f"Delete topic {name}",
        carry_out,
        "/topics",
        ("topic", "partitions"),
        [{"topic": name, "partitions": len(topic.partitions)}],
        ["odradek", "topic", "delete", name, "--yes"],
        typed=name,
        note="All its records are lost.",
    )
