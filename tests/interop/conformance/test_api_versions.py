"""Compares ApiVersions, and frames outside of any API, with Apache Kafka."""

from __future__ import annotations

import struct

import pytest

from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.types import NO_UUID
from tests.interop.conformance.compare import Both
from tests.interop.conformance.peers import Peer
from tests.wire import request_frame

FIRST_NAMED_VERSION = 3
NAMES = ("", "a", "-a", "a-", ".a", "a.", "a b", "a_b", "a/b", "1", "A.b-2", "ü", "a" * 300)


def ask(peer: Peer, version: int, name: str = "test", software: str = "1") -> None:
    peer.try_ask(ApiVersionsRequest(client_software_name=name, client_software_version=software), version)


def test_names_of_software(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        for name in NAMES if version >= FIRST_NAMED_VERSION else NAMES[:1]:
            ask(peer, version, name, "1")
            ask(peer, version, "n", name)

    both.each_version(ApiVersionsRequest, script)


@pytest.mark.parametrize("version", [-1, 99, 32767])
def test_any_version_is_answered(both: Both, version: int) -> None:
    def script(peer: Peer) -> None:
        frame = request_frame(ApiVersionsRequest(), 3)
        requested = frame[:6] + struct.pack(">h", version) + frame[8:]
        peer.try_exchange(requested, ApiVersionsRequest(), 0)

    both(script)


FRAMES = {
    "an unknown API": struct.pack(">hhih", 999, 0, 1, -1),
    "a negative API": struct.pack(">hhih", -1, 0, 1, -1),
    "an API of brokers": struct.pack(">hhih", 62, 0, 1, -1),
    "a version that is not served": struct.pack(">hhih", 3, 99, 1, -1),
    "a negative version": struct.pack(">hhih", 3, -1, 1, -1),
    "nothing": b"",
    "less than a header": b"\0\3\0",
    "a header and no body": struct.pack(">hhih", 19, 2, 1, -1),
    "a client id that is too long": struct.pack(">hhih", 3, 1, 1, 500) + b"abc",
    "a client id cut short, before a body without a byte": struct.pack(">hhih", 18, 0, 1, 5) + b"abc",
    "the same, of ListGroups": struct.pack(">hhih", 16, 2, 1, 5) + b"abc",
    "the same, of a version that is flexible": struct.pack(">hhih", 18, 3, 1, 5) + b"abc",
    "the same, of a version that is to come": struct.pack(">hhih", 18, 99, 1, 5) + b"abc",
    "a client id that is not there": struct.pack(">hhih", 18, 0, 1, 0x7FFF),
    "a client id that is no UTF-8": struct.pack(">hhih", 18, 0, 1, 2) + b"\xff\xed",
    "a tag longer than its frame": struct.pack(">hhih", 18, 3, 1, -1) + b"\x01\x00\xff\xff\xff\xff\x07",
    "a header and nothing of a flexible body": struct.pack(">hhih", 18, 3, 1, -1),
    "a client id of negative length": struct.pack(">hhih", 3, 1, 1, -2) + struct.pack(">i", -1),
    "an array that is too long": struct.pack(">hhihi", 3, 1, 1, -1, 1 << 30),
    "a body and then some": struct.pack(">hhihi", 3, 1, 1, -1, -1) + b"\0" * 9,
    "no client id": struct.pack(">hhihi", 3, 1, 1, -1, -1),
}


@pytest.mark.parametrize("case", FRAMES)
def test_frames(both: Both, case: str) -> None:
    """Compares whether the connection is closed."""

    def script(peer: Peer) -> None:
        peer.note_fate(FRAMES[case])

    both(script)


@pytest.mark.parametrize("size", [-1, -(1 << 31), (1 << 31) - 1, 100 * 1024 * 1024 + 1])
def test_sizes_that_no_frame_has(both: Both, size: int) -> None:
    def script(peer: Peer) -> None:
        peer.send(struct.pack(">i", size))
        peer.note_end()

    both(script)


def test_what_is_served(both: Both) -> None:
    """Odradek serves every API and version of Apache Kafka, and older versions too."""
    request = ApiVersionsRequest(client_software_name="n", client_software_version="1")
    ours, theirs = (peer.quietly(request, 4) for peer in (both.pair.odradek, both.pair.apache))
    assert isinstance(ours, ApiVersionsResponse)
    assert isinstance(theirs, ApiVersionsResponse)
    served = {api.api_key: (api.min_version, api.max_version) for api in ours.api_keys}
    for api in theirs.api_keys:
        first, last = served[api.api_key]
        assert first <= api.min_version, api
        assert last == api.max_version, api


NOT_UTF8 = (
    b"\xff", b"a\xc3(", b"\xed\xa0\x80", b"\xed\xbf", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe2\x82",
)  # fmt: skip


@pytest.mark.parametrize("version", [1, 9])
def test_a_text_that_is_no_utf8_is_read_as_far_as_it_is(both: Both, version: int) -> None:
    """The text is the name of a topic, which the answer repeats."""

    def script(peer: Peer) -> None:
        for name in NOT_UTF8:
            request = MetadataRequest(topics=[MetadataRequestTopic(name="x" * len(name), topic_id=NO_UUID)])
            frame = request_frame(request, version)
            at = frame.rindex(b"x" * len(name))
            peer.try_exchange(frame[:at] + name + frame[at + len(name) :], request, version)

    both(script)
