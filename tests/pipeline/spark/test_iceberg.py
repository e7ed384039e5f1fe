"""Tests loads into Iceberg tables: each offset once, also if two loads run at once. PyIceberg, which did not write the
tables, counts.
"""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from pipeline.decode import Decoding
from pipeline.formats import Format
from pipeline.ranges import EARLIEST, RangeBounds
from tests.pipeline.spark.records import activity, create, produce
from tests.pipeline.spark.tables import DEAD_NAME, Warehouse


@pytest.mark.ci
def test_each_offset_is_loaded_once_and_the_next_run_continues(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 3)
    activity(warehouse.broker, warehouse.topic, 1_000)
    assert warehouse.load().records == 1_000
    assert warehouse.load().ranges == []
    activity(warehouse.broker, warehouse.topic, 200, seed=2)
    assert not warehouse.audit().clean
    assert warehouse.load().records == 200

    offsets = warehouse.offsets()
    assert len(offsets) == len(set(offsets)) == 1_200
    assert warehouse.audit().clean
    assert warehouse.load(starting=RangeBounds(named=EARLIEST)).records == 1_200
    assert warehouse.offsets() == offsets


def test_a_load_that_is_overtaken_loads_what_is_left(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 1)
    produce(warehouse.broker, warehouse.topic, [b"x"] * 10)
    reached: list[str] = []

    def other_is_faster(stage: str) -> None:
        reached.append(stage)
        if stage == "counted" and reached.count("counted") == 1:
            assert warehouse.load().records == 10
            produce(warehouse.broker, warehouse.topic, [b"y"] * 5)

    assert warehouse.load(at=other_is_faster).records == 5
    assert "overtaken" in reached
    assert warehouse.offsets() == [(0, offset) for offset in range(15)]
    assert warehouse.audit().clean


def test_another_program_that_changes_the_table_costs_no_second_read(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 1)
    produce(warehouse.broker, warehouse.topic, [b"x"] * 10)
    warehouse.load()
    produce(warehouse.broker, warehouse.topic, [b"y"] * 5)
    reached: list[str] = []

    def compacted(stage: str) -> None:
        reached.append(stage)
        if stage == "counted":
            warehouse.table.java().newAppend().commit()

    assert warehouse.load(at=compacted).records == 5
    assert "overtaken" not in reached
    assert warehouse.offsets() == [(0, offset) for offset in range(15)]


def test_aborted_records_are_no_gap_and_bad_values_are_dead_letters(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 1)
    producer = Producer({"bootstrap.servers": warehouse.broker.bootstrap, "transactional.id": warehouse.topic})
    producer.init_transactions()
    for value, end in ((b'{"a": 1}', producer.commit_transaction), (b"aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(warehouse.topic, value)
        producer.flush()
        end()
    produce(warehouse.broker, warehouse.topic, [b"not json"])

    done = warehouse.load(decoding=Decoding(Format.JSON, "a int"))
    assert (done.records, done.quarantined) == (1, 1)
    assert warehouse.offsets() == [(0, 0)]
    assert warehouse.offsets(DEAD_NAME) == [(0, 4)]
    audited = warehouse.audit()
    assert audited.clean
    assert audited.lines[0].empty == 3  # two markers, and the aborted record
