"""Tests the schema language: declared classes and the properties of their fields."""

from __future__ import annotations

import pytest

from protocol.schema import IMPLICIT, Kind, fields_of, identity, kind_of, struct, versioned, wire
from protocol.types import NO_UUID, float64, int16, int32, records, uuid
from protocol.versions import ANY_VERSION, Versions, parse_versions


@struct
class Part:
    """A part with its own defaults."""

    number: int32 = wire(default=-1)
    names: list[str] = wire(default=IMPLICIT)


@versioned(7, versions="1-4", flexible="3+")
class Sample:
    """A message with a field of each type."""

    name: str = wire(default=IMPLICIT)
    count: int16 = wire(default=IMPLICIT)
    part: Part = wire(default=IMPLICIT)
    parts: list[Part] | None = wire(nullable="2+", default=IMPLICIT)
    since_two: str | None = wire(versions="2+", nullable="3+", default=None)
    topic_id: uuid = wire(versions="3+", tag=1, default=IMPLICIT)
    batches: records | None = wire(nullable="0+", default=IMPLICIT)
    rate: float64 = wire(default=0.5)


@pytest.mark.parametrize(
    ("text", "versions"),
    [("0-4", (0, 4)), ("3+", (3, ANY_VERSION)), ("2", (2, 2)), ("none", (1, 0)), (None, (1, 0))],
)
def test_ranges_are_spelt_as_in_kafkas_schemas(text: str | None, versions: tuple[int, int]) -> None:
    assert parse_versions(text) == Versions(*versions)


def test_a_range_holds_both_its_ends_and_the_empty_one_nothing() -> None:
    assert [version for version in range(-1, 6) if version in Versions(1, 4)] == [1, 2, 3, 4]
    assert not any(version in parse_versions("none") for version in range(-1, 6))
    text: object = "1"
    assert text not in Versions(1, 4)


def test_ranges_print_as_a_reader_expects() -> None:
    assert (str(Versions(1, 4)), str(parse_versions("none"))) == ("1-4", "none")


def test_a_message_knows_its_key_and_versions() -> None:
    assert identity(Sample) == (7, Versions(1, 4), Versions(3, ANY_VERSION))


def test_fields_are_in_declared_order_with_their_kinds() -> None:
    assert [(field.name, field.kind.name) for field in fields_of(Sample)] == [
        ("name", "string"),
        ("count", "int16"),
        ("part", "struct"),
        ("parts", "array"),
        ("since_two", "string"),
        ("topic_id", "uuid"),
        ("batches", "records"),
        ("rate", "float64"),
    ]
    assert fields_of(Sample)[3].kind == Kind("array", items=Kind("struct", struct=Part))


def test_every_field_has_a_default() -> None:
    value = Sample()
    assert (value.name, value.count, value.parts, value.since_two) == ("", 0, [], None)
    assert (value.topic_id, value.batches, value.rate) == (NO_UUID, b"", 0.5)
    assert value.part == Part(number=-1, names=[])


def test_mutable_defaults_are_not_shared() -> None:
    one, other = Sample(), Sample()
    one.part.names.append("a")
    assert other.part.names == []


def test_values_compare_by_type_and_fields() -> None:
    assert Part(number=1) == Part(number=1)
    assert Part(number=1) != Part(number=2)
    other: object = Sample()
    assert Part() != other


def test_values_print_their_fields() -> None:
    assert repr(Part(number=3, names=["a"])) == "Part(number=3, names=['a'])"


def test_instances_have_slots_and_refuse_strangers() -> None:
    with pytest.raises(AttributeError):
        Part().stranger = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Part(stranger=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Part(1)  # type: ignore[call-arg]


def test_values_are_mutable_and_so_not_hashable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Part())


def test_a_field_in_tags_is_tagged_wherever_it_is_carried_unless_told() -> None:
    topic_id = fields_of(Sample)[5].wire
    assert (topic_id.tag, topic_id.tagged) == (1, parse_versions("3+"))
    assert wire(versions="0+", tag=2, tagged="5+").tagged == parse_versions("5+")
    assert wire().tagged == parse_versions("none")


@pytest.mark.parametrize("annotation", [int, object, dict[str, str]])
def test_a_type_that_the_wire_does_not_have_is_named(annotation: object) -> None:
    with pytest.raises(TypeError, match="not a type of the wire"):
        kind_of(annotation)
