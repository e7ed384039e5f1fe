"""Tests the compiled codec: the wire format byte by byte, and its errors for invalid bytes."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from protocol.codec import bounded_decoder, decode, encode, encoder
from protocol.errors import ProtocolError
from protocol.primitives import AS_JAVA
from protocol.schema import IMPLICIT, struct, versioned, wire
from protocol.types import float64, int8, int16, int32, int64, records, uint16, uint32, uuid

TOPIC_ID = bytes(range(16))


@versioned(0, versions="0", flexible="none")
class Numbers:
    """Fixed-width fields, which become a single struct call."""

    a: int8 = wire()
    b: int16 = wire()
    c: int32 = wire()
    d: int64 = wire()
    e: uint16 = wire()
    f: uint32 = wire()
    g: float64 = wire()
    h: bool = wire()
    i: uuid = wire()


@versioned(0, versions="0-1", flexible="1+")
class Texts:
    """Strings and bytes, which may be null."""

    text: str | None = wire(nullable="0+")
    data: bytes | None = wire(nullable="0+")
    batches: records | None = wire(nullable="0+")


@versioned(0, versions="0-1", flexible="1+")
class Lists:
    """Arrays of all types."""

    numbers: list[int32] | None = wire(nullable="0+")
    names: list[str] = wire(default=IMPLICIT)
    ids: list[uuid] = wire(default=IMPLICIT)
    blobs: list[bytes] = wire(default=IMPLICIT)


@struct
class Inner:
    """A struct with a tag of its own."""

    x: int8 = wire()
    y: int8 = wire(versions="1+", tag=0, default=0)


@versioned(0, versions="0-1", flexible="1+")
class Outer:
    """Structs inline, null, in arrays and in tags."""

    one: Inner = wire(default=IMPLICIT)
    maybe: Inner | None = wire(nullable="0+", default=None)
    many: list[Inner] = wire(default=IMPLICIT)
    number: int32 = wire(versions="1+", tag=3, default=5)
    tagged: Inner = wire(versions="1+", tag=1, default=IMPLICIT)
    rare: Inner | None = wire(versions="1+", nullable="1+", tag=7, default=None)
    names: list[str] | None = wire(versions="1+", nullable="1+", tag=9, default=IMPLICIT)


@versioned(0, versions="0-3", flexible="none")
class Ages:
    """A field that a later version added, and a field that it removed."""

    old: int8 = wire(versions="0-1", default=-7)
    new: int8 = wire(versions="2+", default=7)


@struct
class Nothing:
    """A struct without bytes on the wire in classic versions."""


@versioned(0, versions="0-1", flexible="1+")
class ManyNothings:
    """An array whose items have no bytes."""

    nothings: list[Nothing] = wire()


@versioned(0, versions="0", flexible="0+")
class Unprefixed:
    """A string that keeps its classic prefix in a flexible version."""

    text: str = wire(flexible=False)


def hexed(value: object, version: int) -> str:
    return encode(value, version).hex(" ")


def test_fixed_widths_are_big_endian() -> None:
    value = Numbers(a=-1, b=2, c=-3, d=4, e=65535, f=2**32 - 1, g=1.5, h=True, i=TOPIC_ID)
    wire_form = "ff 00 02 ff ff ff fd 00 00 00 00 00 00 00 04 ff ff ff ff ff ff 3f f8 00 00 00 00 00 00 01 "
    assert hexed(value, 0) == wire_form + TOPIC_ID.hex(" ")
    assert decode(Numbers, 0, encode(value, 0)) == (value, 46)


def test_classic_lengths_are_int16_for_strings_and_int32_for_bytes() -> None:
    assert hexed(Texts(text="hé", data=b"\x01", batches=b"\x02"), 0) == "00 03 68 c3 a9 00 00 00 01 01 00 00 00 01 02"
    assert hexed(Texts(text=None, data=None, batches=None), 0) == "ff ff ff ff ff ff ff ff ff ff"


def test_compact_lengths_are_varints_of_one_more() -> None:
    assert hexed(Texts(text="a", data=b"", batches=b"\x02"), 1) == "02 61 01 02 02 00"
    assert hexed(Texts(text=None, data=None, batches=None), 1) == "00 00 00 00"
    assert encode(Texts(text="x" * 300, data=None, batches=None), 1)[:2] == b"\xad\x02"


@pytest.mark.parametrize("version", [0, 1])
def test_null_and_empty_are_told_apart(version: int) -> None:
    for value in (Texts(text=None, data=None, batches=None), Texts(text="", data=b"", batches=b"")):
        assert decode(Texts, version, encode(value, version))[0] == value


def test_arrays_carry_a_count() -> None:
    value = Lists(numbers=[1, -1], names=["a", ""], ids=[TOPIC_ID], blobs=[b"z"])
    numbers, ids = "00 00 00 01 ff ff ff ff", TOPIC_ID.hex(" ")
    assert hexed(value, 0) == (
        f"00 00 00 02 {numbers} 00 00 00 02 00 01 61 00 00 00 00 00 01 {ids} 00 00 00 01 00 00 00 01 7a"
    )
    assert hexed(value, 1) == f"03 {numbers} 03 02 61 01 02 {ids} 02 02 7a 00"
    assert hexed(Lists(numbers=None), 0) == "ff ff ff ff " + " ".join(["00 00 00 00"] * 3)


@pytest.mark.parametrize("version", [0, 1])
def test_arrays_come_back_from_any_buffer(version: int) -> None:
    value = Lists(numbers=[1, -1], names=["a", ""], ids=[TOPIC_ID], blobs=[b"z"])
    whole = encode(value, version)
    for buffer in (whole, bytearray(whole), memoryview(whole)):
        assert decode(Lists, version, buffer) == (value, len(whole))


def test_a_nullable_struct_has_a_byte_before_it_and_in_a_tag_a_varint() -> None:
    assert hexed(Outer(one=Inner(x=1)), 0) == "01 ff 00 00 00 00"
    assert hexed(Outer(one=Inner(x=1), maybe=Inner(x=2)), 0) == "01 01 02 00 00 00 00"
    assert hexed(Outer(rare=Inner(x=2)), 1) == "00 00 ff 01 01 07 03 01 02 00"


def test_tags_ascend_and_defaults_stay_out() -> None:
    value = Outer(number=6, tagged=Inner(x=0, y=4), names=["n"])
    assert hexed(value, 1) == "00 00 ff 01 03 01 05 00 01 00 01 04 03 04 00 00 00 06 09 03 02 02 6e"
    assert decode(Outer, 1, encode(value, 1))[0] == value
    assert hexed(Outer(), 1) == "00 00 ff 01 00"


def test_null_in_a_tag_whose_default_is_empty_is_sent() -> None:
    assert hexed(Outer(names=None), 1) == "00 00 ff 01 01 09 01 00"
    assert decode(Outer, 1, encode(Outer(names=None), 1))[0].names is None


def test_unknown_tags_are_skipped() -> None:
    assert decode(Outer, 1, bytes.fromhex("00 00 ff 01 02 03 04 00000006 63 02 abcd"))[0] == Outer(number=6)


def test_a_tag_twice_counts_once() -> None:
    twice = bytes.fromhex("00 00 ff 01 02 03 04 00000006 03 04 00000007")
    assert decode(Outer, 1, twice)[0] == Outer(number=7)


@pytest.mark.parametrize("size", ["03", "05"])
def test_a_tag_of_another_length_than_its_field_is_refused(size: str) -> None:
    with pytest.raises(ProtocolError, match="number has a wrong length"):
        decode(Outer, 1, bytes.fromhex(f"00 00 ff 01 01 03 {size} 0000000600"))


def test_a_field_that_a_version_lacks_has_its_default() -> None:
    assert hexed(Ages(old=1, new=2), 0) == "01"
    assert hexed(Ages(old=1, new=2), 3) == "02"
    assert decode(Ages, 0, b"\x01")[0] == Ages(old=1, new=7)
    assert decode(Ages, 2, b"\x01")[0] == Ages(old=-7, new=1)


def test_a_field_may_keep_its_classic_prefix() -> None:
    assert hexed(Unprefixed(text="a"), 0) == "00 01 61 00"


def test_records_are_views_of_the_frame_and_go_out_uncopied() -> None:
    frame = bytearray(encode(Texts(text="", data=b"", batches=b"batch"), 1))
    value, _ = decode(Texts, 1, memoryview(frame))
    frame[frame.index(b"batch")] = ord("p")
    assert isinstance(value.batches, memoryview)
    assert bytes(value.batches) == b"patch"
    parts: list[object] = []
    encoder(Texts, 1)(value, parts.append)
    assert any(part is value.batches for part in parts)


def test_bytes_are_copied_out_of_the_frame() -> None:
    value, _ = decode(Texts, 1, memoryview(encode(Texts(text="", data=b"d", batches=None), 1)))
    assert type(value.data) is bytes


def test_decoding_begins_where_it_is_told_and_says_where_it_ends() -> None:
    assert decode(Ages, 0, b"\xff\xff\x05\xff", 2) == (Ages(old=5), 3)


WRONG: dict[str, tuple[type, int, str, str]] = {
    "a short fixed field": (Numbers, 0, "00", "requires a buffer"),
    "a string beyond the end": (Texts, 0, "00 05 61", "text of 5 does not fit in the 1 bytes"),
    "a null string": (Unprefixed, 0, "ff ff 00", "text is null, which is not allowed"),
    "a null array": (Lists, 0, "00000000 ffffffff", "names is null, which is not allowed"),
    "a null item": (Lists, 0, "00000000 00000001 ffff 0000 0000", "an item of names is null"),
    "an item beyond the end": (Lists, 0, "00000000 00000001 0009 61", "an item of names of 9"),
    "a count beyond the end": (Lists, 0, "40000000", "numbers of 1073741824 does not fit"),
    "a compact count beyond the end": (Lists, 1, "ffffffff0f", "numbers of 4294967294 does not fit"),
    "a varint of more than 32 bits": (Lists, 1, "ffffffff1f", "longer than 32 bits"),
    "a varint without an end": (Lists, 1, "ff", "index"),
    "a tagged field beyond the end": (Outer, 1, "00 00 ff 01 01 03 7f", "a tagged field of 127"),
    "items without bytes, by the million": (ManyNothings, 0, "7fffffff", "nothings of 2147483647"),
    "a version that there is not": (Ages, 4, "00", "has versions 0-3, not 4"),
}


@pytest.mark.parametrize(("cls", "version", "data", "words"), WRONG.values(), ids=WRONG)
def test_wrong_bytes_are_told_to_a_reader(cls: type[Any], version: int, data: str, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        decode(cls, version, bytes.fromhex(data))


def test_encoding_a_version_that_there_is_not_is_our_own_error() -> None:
    with pytest.raises(ValueError, match="Ages has versions 0-3, not 4"):
        encode(Ages(), 4)


def test_a_traceback_shows_the_generated_line() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(Numbers, 0, b"")
    shown = "".join(traceback.format_exception(caught.value))
    assert "<decode Numbers v0>" in shown
    assert "o.a, o.b, o.c" in shown


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (b"ok \xc3\xbc", "ok \xfc"),
        (b"\xff", "?"),
        (b"a\xc3(", "a?("),
        (b"\xe2\x82", "?"),
        (b"\xc0\xaf", "??"),
        (b"\xed\xa0\x80", "?"),
        (b"\xed\xbf", "?"),
        (b"\xed\xac\xf0\xac\x80", "??"),
        (b"\xed", "?"),
        (b"\xf4\x90\x80\x80", "????"),
    ],
)
def test_bytes_that_are_no_text_are_read_as_java_reads_them(text: bytes, read: str) -> None:
    assert str(memoryview(text), "utf-8", AS_JAVA) == read.replace("?", "\ufffd")


@versioned(900, versions="0-1", flexible="1+")
class Crowd:
    names: list[str] = wire()
    ids: list[int32] = wire()
    uuids: list[uuid] = wire()
    groups: list[CrowdGroup] | None = wire(nullable="0+")
    late: list[str] = wire(versions="1+", tag=0, default=IMPLICIT)


@struct
class CrowdGroup:
    members: list[str] = wire()


CROWD = Crowd(
    names=["", ""], ids=[1], uuids=[bytes(16)], groups=[CrowdGroup(members=["a"]), CrowdGroup(members=[])], late=["z"]
)
CROWD_ITEMS = 7


@pytest.mark.parametrize(("version", "items"), [(0, CROWD_ITEMS), (1, CROWD_ITEMS + 2)])
def test_a_bounded_decoder_counts_the_items_of_all_arrays_and_the_tags(version: int, items: int) -> None:
    data = encode(CROWD, version)
    decode_within = bounded_decoder(Crowd, version, items)
    for _ in range(2):
        assert decode_within(data, 0, len(data)) == decode(Crowd, version, data)
    with pytest.raises(ProtocolError, match=f"more than {items - 1} items"):
        bounded_decoder(Crowd, version, items - 1)(data, 0, len(data))


def test_a_bounded_decoder_gives_up_over_tags_that_nobody_reads() -> None:
    data = encode(Crowd(names=[], ids=[], uuids=[], groups=None), 1)[:-1] + b"\x85\x01" + b"\x09\0" * 133
    assert decode(Crowd, 1, data)[1] == len(data)
    with pytest.raises(ProtocolError, match="more than 132 items"):
        bounded_decoder(Crowd, 1, 132)(data, 0, len(data))
