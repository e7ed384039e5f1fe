"""Tests the partition counts of a topology's topics, the internal topics that are missing, and what is wrong with it.

The cases are those of Apache Kafka's RepartitionTopicsTest, CopartitionedTopicsEnforcerTest, ChangelogTopicsTest,
InternalTopicManagerTest, ConfiguredTopologyTest and ConfiguredSubtopologyTest at 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.group.streams.configured import ConfiguredTopology, configure
from coordinator.group.streams.partition_counts import repartition_counts
from coordinator.group.streams.status import GroupStatus, StatusCode
from coordinator.group.streams.topology import CopartitionGroup, InternalTopicInfo, Subtopology, Topology
from protocol.errors import ErrorCode, KafkaError
from protocol.java_hash import hash_map_order
from protocol.messages import streams_group_describe as describe
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from tests.counted_work import lines_run

LOOPS = (
    "Failed to compute number of partitions for all repartition topics. There may be loops in the topology that cannot "
    "be resolved."
)
NEVER_WRITTEN = (
    "Failed to compute number of partitions for all repartition topics, because a repartition source topic is never "
    "used as a sink topic."
)


def internal(names: str) -> tuple[InternalTopicInfo, ...]:
    """Returns internal topics: `fixed=4` has its partition count."""
    pairs = (name.partition("=") for name in names.split())
    return tuple(InternalTopicInfo(name, int(count or 0)) for name, _, count in pairs)


def subtopology(
    name: str, sources: str = "", sinks: str = "", repartition: str = "", changelogs: str = "", together: str = ""
) -> Subtopology:
    """Returns a subtopology. `together` has groups of copartitioned topics: `a r1; b r2`."""
    inputs, repartitioned = tuple(sources.split()), internal(repartition)
    read = [topic.name for topic in repartitioned]
    groups = tuple(
        CopartitionGroup(
            source_topics=tuple(inputs.index(topic) for topic in group.split() if topic in inputs),
            repartition_sources=tuple(read.index(topic) for topic in group.split() if topic not in inputs),
        )
        for group in together.split(";")
        if together
    )
    return Subtopology(
        name,
        source_topics=inputs,
        changelogs=internal(changelogs),
        repartition_sinks=tuple(sinks.split()),
        repartition_sources=repartitioned,
        copartition_groups=groups,
    )


def topology(*subtopologies: Subtopology) -> Topology:
    return Topology(3, {subtopology.subtopology_id: subtopology for subtopology in subtopologies})


def counts(text: str) -> dict[str, int]:
    """Returns the partition counts of `a=2 b=3`."""
    return {name: int(count) for name, _, count in (entry.partition("=") for entry in text.split())}


def created(configured: ConfiguredTopology) -> dict[str, int]:
    return {topic.name: topic.num_partitions for topic in configured.missing.values()}


def rejection(*subtopologies: Subtopology, existing: str = "") -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        configure(topology(*subtopologies), counts(existing))
    return caught.value


def incorrectly_partitioned(detail: str) -> GroupStatus:
    return GroupStatus(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)


@pytest.mark.parametrize(
    ("subtopologies", "expected"),
    [
        pytest.param(
            [subtopology("0", "s1 s2", sinks="r1"), subtopology("1", repartition="r1=4")], "r1=4", id="the set count"
        ),
        pytest.param(
            [
                subtopology("0", "s1", sinks="r1 flexible", repartition="r2=2"),
                subtopology("1", repartition="r1=4 flexible", sinks="r2"),
            ],
            "r1=4 r2=2 flexible=3",
            id="the count of the source topic upstream",
        ),
        pytest.param(
            [
                subtopology("0", "s1", repartition="r1=4", sinks="flexible"),
                subtopology("1", repartition="flexible", sinks="r1"),
            ],
            "r1=4 flexible=4",
            id="the count of the repartition topic upstream",
        ),
        pytest.param([subtopology("0", "s1")], "", id="no repartition topics"),
        pytest.param(
            [
                subtopology("0", repartition="r2", sinks="r3"),
                subtopology("1", repartition="r1", sinks="r2"),
                subtopology("2", "s1", sinks="r1"),
                subtopology("3", repartition="r3"),
            ],
            "r1=3 r2=3 r3=3",
            id="a chain in the wrong order",
        ),
        pytest.param(
            [
                subtopology("0", "s1", sinks="r1"),
                subtopology("1", repartition="r1 r2", sinks="r3"),
                subtopology("2", "large", sinks="r2"),
                subtopology("3", repartition="r3"),
            ],
            "r1=3 r2=8 r3=3",
            id="only inputs that are known at the subtopology's turn",
        ),
    ],
)
def test_repartition_topics_get_counts(subtopologies: list[Subtopology], expected: str) -> None:
    assert repartition_counts(subtopologies, counts("s1=3 s2=3 large=8")) == counts(expected)


@pytest.mark.parametrize(
    ("subtopologies", "message"),
    [
        pytest.param([subtopology("0", repartition="r", sinks="r")], LOOPS, id="a topic that feeds itself"),
        pytest.param(
            [subtopology("0", repartition="r1", sinks="r2"), subtopology("1", repartition="r2", sinks="r1")],
            LOOPS,
            id="two subtopologies that feed each other",
        ),
        pytest.param([subtopology("0", sinks="r")], LOOPS, id="a writer without inputs"),
        pytest.param([subtopology("0", repartition="r")], NEVER_WRITTEN, id="a topic without a writer"),
        pytest.param([subtopology("0")], "No source topics found for subtopology 0", id="no inputs"),
        pytest.param([subtopology("0", changelogs="c")], "No source topics found for subtopology 0", id="only state"),
        pytest.param(
            [subtopology("0", repartition="r=-1", sinks="r")],
            "The repartition source topic r has -1 partitions; the number can't be negative.",
            id="a negative count",
        ),
        pytest.param(
            [Subtopology("0", ("s",), copartition_groups=(CopartitionGroup(source_topics=(1,)),))],
            "A copartition group of subtopology 0 has the index 1 into a list of 1 topics.",
            id="an index behind the end",
        ),
        pytest.param(
            [Subtopology("0", ("s",), copartition_groups=(CopartitionGroup(repartition_sources=(-1,)),))],
            "A copartition group of subtopology 0 has the index -1 into a list of 0 topics.",
            id="a negative index",
        ),
    ],
)
def test_an_invalid_topology_is_rejected(subtopologies: list[Subtopology], message: str) -> None:
    error = rejection(*subtopologies, existing="s=1")
    assert (error.code, error.message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def test_an_internal_topic_needs_a_valid_name() -> None:
    error = rejection(subtopology("0", "s", changelogs="a/b"), existing="s=1")
    assert error.code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("repartition", "together", "existing", "expected"),
    [
        pytest.param("r=10", "first r", "first=10 second=2", "r=10", id="a set count that is right"),
        pytest.param("r", "first second r", "first=2 second=2 wide=10", "r=2", id="the count of the external topics"),
        pytest.param("one=1 two=15 three=5", "", "first=1 second=1", "one=1 two=15 three=5", id="no copartition group"),
        pytest.param("r1=10 r2=10", "r1 r2", "first=1 second=1", "r1=10 r2=10", id="equal set counts"),
        pytest.param("r1=2 r2 r3=2", "r1 r2", "first=9 second=9", "r1=2 r2=2 r3=2", id="the only set count"),
        pytest.param("r1 r2", "r1 r2", "first=4 second=1", "r1=4 r2=4", id="the largest count"),
        pytest.param("r", " ", "first=4 second=1", "r=4", id="an empty group"),
    ],
)
def test_copartitioned_topics_get_one_count(repartition: str, together: str, existing: str, expected: str) -> None:
    written = " ".join(topic.name for topic in internal(repartition))
    configured = configure(
        topology(
            subtopology("0", "first second", sinks=written),
            subtopology("1", "first second", repartition=repartition, together=together),
        ),
        counts(existing),
    )
    assert created(configured) == counts(expected)


def test_the_largest_count_of_three_writers_is_for_all() -> None:
    configured = configure(
        topology(
            subtopology("0", "a", sinks="r0"),
            subtopology("1", "b", sinks="r1"),
            subtopology("2", "c", sinks="r2"),
            subtopology("3", repartition="r0 r1 r2", together="r0 r1 r2", changelogs="state"),
        ),
        counts("a=1 b=15 c=5"),
    )
    assert created(configured) == counts("r0=15 r1=15 r2=15 state=15")


@pytest.mark.parametrize(
    ("repartition", "together", "detail"),
    [
        pytest.param(
            "",
            "first second",
            "Following topics do not have the same number of partitions: [{first=2, second=1}]",
            id="external topics",
        ),
        pytest.param(
            "r1=10 r2=5",
            "r1 r2",
            "Following topics do not have the same number of partitions: [{r1=10, r2=5}]",
            id="two set counts",
        ),
        pytest.param(
            "r1=10 r2 r3=5",
            "r1 r2",
            "Following topics do not have the same number of partitions: [{r1=10, r2=2}]",
            id="a set count outside of the group, as in Kafka",
        ),
        pytest.param(
            "r=10",
            "first r",
            "Number of partitions [10] of repartition topic [r] doesn't match number of partitions [2] of the source "
            "topic.",
            id="a set count and an external topic",
        ),
    ],
)
def test_topics_that_cant_be_copartitioned(repartition: str, together: str, detail: str) -> None:
    written = " ".join(topic.name for topic in internal(repartition))
    configured = configure(
        topology(
            subtopology("0", "first", sinks=written),
            subtopology("1", "first second", repartition=repartition, together=together),
        ),
        counts("first=2 second=1"),
    )
    assert configured == ConfiguredTopology(3, problem=incorrectly_partitioned(detail))
    assert not configured.is_ready


def test_a_group_that_comes_later_overrides() -> None:
    configured = configure(
        topology(
            subtopology("0", "a", sinks="r"),
            subtopology("1", "b", repartition="r", together="b r"),
            subtopology("2", "c", repartition="r", together="c r"),
        ),
        counts("a=1 b=2 c=3"),
    )
    assert created(configured) == {"r": 3}


def test_changelogs_have_as_many_partitions_as_the_widest_input() -> None:
    configured = configure(
        topology(
            subtopology("0", "a b", changelogs="c0"),
            subtopology("1", "a", changelogs="c1 c2"),
            subtopology("2", "b"),
        ),
        counts("a=3 b=5"),
    )
    assert created(configured) == counts("c0=5 c1=3 c2=3")
    assert configured.subtopologies is not None
    assert {name: entry.task_count for name, entry in configured.subtopologies.items()} == counts("0=5 1=3 2=5")
    assert {name: entry.is_stateful for name, entry in configured.subtopologies.items()} == {
        "0": True,
        "1": True,
        "2": False,
    }


EXAMPLE = topology(
    Subtopology(
        "subtopology1",
        source_topics=("source1",),
        repartition_sinks=("repartition",),
        changelogs=(InternalTopicInfo("changelog1", configs=(("cleanup.policy", "compact"),)),),
    ),
    Subtopology(
        "subtopology2",
        source_topics=("source2",),
        repartition_sources=(InternalTopicInfo("repartition", replication_factor=3),),
        changelogs=(InternalTopicInfo("changelog2"),),
        copartition_groups=(CopartitionGroup(source_topics=(0,), repartition_sources=(0,)),),
    ),
)


def test_a_source_topic_is_missing() -> None:
    problem = GroupStatus(StatusCode.MISSING_SOURCE_TOPICS, "Source topics source2 are missing.")
    assert configure(EXAMPLE, counts("source1=2")) == ConfiguredTopology(3, problem=problem)


def test_internal_topics_are_missing() -> None:
    configured = configure(EXAMPLE, counts("source1=2 source2=2 changelog2=2"))
    assert not configured.is_ready
    assert configured.problem is not None
    assert configured.problem.code == StatusCode.MISSING_INTERNAL_TOPICS
    assert configured.missing == {
        "repartition": CreatableTopic(
            name="repartition", num_partitions=2, replication_factor=3, assignments=[], configs=[]
        ),
        "changelog1": CreatableTopic(
            name="changelog1",
            num_partitions=2,
            replication_factor=-1,
            assignments=[],
            configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")],
        ),
    }


def test_all_topics_exist() -> None:
    configured = configure(EXAMPLE, counts("source1=2 source2=2 changelog1=2 changelog2=2 repartition=2"))
    assert configured.is_ready
    assert (configured.problem, configured.missing) == (None, {})
    assert configured.subtopologies is not None
    second = configured.subtopologies["subtopology2"]
    assert (second.task_count, second.inputs, second.is_stateful) == (2, {"source2", "repartition"}, True)
    assert second.repartition_sources == {"repartition": InternalTopicInfo("repartition", 2, 3)}
    assert second.changelogs == {"changelog2": InternalTopicInfo("changelog2", 2)}


def test_an_internal_topic_exists_with_another_count() -> None:
    configured = configure(EXAMPLE, counts("source1=2 source2=2 changelog1=3"))
    detail = "Existing topic changelog1 has different number of partitions: expected 2, found 3"
    assert configured == ConfiguredTopology(3, problem=incorrectly_partitioned(detail))


def test_an_existing_repartition_topic_with_another_count_than_set() -> None:
    one = topology(subtopology("0", "s", sinks="r"), subtopology("1", repartition="r=4"))
    detail = "Existing topic r has different number of partitions: expected 4, found 3"
    assert configure(one, counts("s=1 r=3")).problem == incorrectly_partitioned(detail)


@pytest.mark.parametrize(
    ("count", "listed"),
    [
        (1, "t0"),
        (3, "t0, t1, t2"),
        (4, "t0, t1, t2 and 1 additional topics"),
    ],
)
def test_a_status_names_three_topics(count: int, listed: str) -> None:
    names = " ".join(f"t{index}" for index in range(count))
    assert configure(topology(subtopology("0", names)), {}).problem == GroupStatus(
        StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {listed} are missing."
    )
    configured = configure(topology(subtopology("0", "s", changelogs=names)), {"s": 1})
    assert configured.problem == GroupStatus(
        StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {listed}"
    )


def test_missing_internal_topics_are_in_the_order_of_a_hash_map() -> None:
    names = " ".join(f"t{index}" for index in range(9))
    configured = configure(topology(subtopology("0", "s", changelogs=names)), {"s": 1})
    assert list(configured.missing) == ["t4", "t5", "t6", "t7", "t8", "t0", "t1", "t2", "t3"]
    assert configured.problem == GroupStatus(
        StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: t4, t5, t6 and 6 additional topics"
    )


def test_a_configured_topology_is_described() -> None:
    configured = configure(EXAMPLE, counts("source1=2 source2=2"))
    described = configured.described()
    assert described.epoch == 3
    assert described.subtopologies is not None
    assert [entry.subtopology_id for entry in described.subtopologies] == ["subtopology1", "subtopology2"]
    assert described.subtopologies[1] == describe.Subtopology(
        subtopology_id="subtopology2",
        source_topics=["source2"],
        repartition_sink_topics=[],
        state_changelog_topics=[
            describe.TopicInfo(name="changelog2", partitions=2, replication_factor=0, topic_configs=[])
        ],
        repartition_source_topics=[
            describe.TopicInfo(name="repartition", partitions=2, replication_factor=3, topic_configs=[])
        ],
    )


def test_a_topology_without_counts_is_described_without_subtopologies() -> None:
    assert configure(EXAMPLE, {}).described() == describe.Topology(epoch=3, subtopologies=[])


def as_in_kafka(subtopologies: Iterable[Subtopology], existing: Mapping[str, int]) -> dict[str, int] | None:
    """Returns the counts of repartition topics as Kafka computes them, in rounds over all subtopologies; None if it
    fails."""
    subtopologies = list(subtopologies)
    decided = {
        topic.name: topic.partitions
        for entry in subtopologies
        for topic in entry.repartition_sources
        if topic.partitions
    }
    progress = True
    while progress:
        progress = False
        for entry in subtopologies:
            for sink in entry.repartition_sinks:
                known = [decided.get(topic.name, 0) for topic in entry.repartition_sources]
                known += [existing.get(topic, 0) for topic in entry.source_topics]
                if sink not in decided and any(known):
                    decided[sink] = max(known)
                    progress = True
    needed = [sink for entry in subtopologies for sink in entry.repartition_sinks]
    needed += [topic.name for entry in subtopologies for topic in entry.repartition_sources]
    return decided if decided.keys() >= set(needed) else None


repartition_topics = st.lists(st.sampled_from([f"r{index}" for index in range(6)]), max_size=3, unique=True)
graphs = st.lists(
    st.tuples(st.lists(st.sampled_from("abc"), max_size=1), repartition_topics, repartition_topics), max_size=6
)


@settings(max_examples=100)
@given(graphs, st.dictionaries(st.sampled_from([f"r{index}" for index in range(6)]), st.integers(1, 9), max_size=1))
def test_any_graph_gets_the_counts_that_kafka_computes(
    graph: list[tuple[list[str], list[str], list[str]]], fixed: dict[str, int]
) -> None:
    subtopologies = [
        Subtopology(
            str(index),
            source_topics=tuple(sources),
            repartition_sinks=tuple(sinks),
            repartition_sources=tuple(InternalTopicInfo(name, fixed.get(name, 0)) for name in read),
        )
        for index, (sources, sinks, read) in enumerate(graph)
    ]
    existing = counts("a=2 b=5 c=7")
    expected = as_in_kafka(subtopologies, existing)
    if expected is None:
        with pytest.raises(KafkaError):
            repartition_counts(subtopologies, existing)
    else:
        assert repartition_counts(subtopologies, existing) == expected


def test_the_work_is_proportional_to_the_topology() -> None:
    def chain(size: int) -> Topology:
        """Returns a chain of subtopologies, each before the writer of its input in Kafka's order."""
        order = hash_map_order([f"{index:04}" for index in range(size)])
        return topology(
            *(
                subtopology(
                    name,
                    sources="s" if index == size - 1 else "",
                    repartition=f"r{index}" if index < size - 1 else "",
                    sinks=f"r{index - 1}" if index else "",
                    together=f"r{index}" if index < size - 1 else "",
                    changelogs=f"c{index}",
                )
                for index, name in enumerate(order)
            )
        )

    def work(size: int) -> int:
        built = chain(size)
        return lines_run(lambda: configure(built, {"s": 2}))

    assert work(800) < 13 * work(80)
    assert created(configure(chain(300), {"s": 2})) == {
        **{f"r{index}": 2 for index in range(299)},
        **{f"c{index}": 2 for index in range(300)},
    }
