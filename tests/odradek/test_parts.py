"""The parts of odradek.testing, without a broker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.jaas import parse_jaas
from broker.config.sources import from_file, load
from odradek.testing import Acl, Broker, Cluster, Partition, Record
from odradek.testing.broker import option_text
from odradek.testing.clock import duration_ms
from odradek.testing.faults import FaultFields
from odradek.testing.ports import ReservedPort
from odradek.testing.process import Ready, parse_ready, write_properties
from odradek.testing.security import USER_NAME, Operation, Security
from odradek.testing.views import group_of, record_of, request_of
from protocol import acl
from protocol.properties import read_properties
from tests.sources import ROOT

VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@pytest.mark.parametrize(("lines", "ready"), [
    (b"control 127.0.0.1:5\nready 127.0.0.1:4\n", Ready("127.0.0.1:4", "127.0.0.1:5")),
    (b"ready [::1]:4\n", Ready("[::1]:4", "")),
    (b"control 127.0.0.1:5\n", None),
    (b"control 127.0.0.1:5\nready 127.0", None),
    (b"ready\n", None),
    (b"Address already in use\n", None),
    (b"", None),
])  # fmt: skip
def test_ready_lines_have_addresses(lines: bytes, ready: Ready | None) -> None:
    assert parse_ready(lines) == ready


@given(value=VALUES)
def test_a_value_comes_out_of_a_file_of_options_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, value: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "values.properties"
    write_properties(file, {"first": value, "last": "1"})
    read = [(name, text) for name, text, _ in read_properties(file.read_bytes().decode())]
    assert read == [("first", value), ("last", "1")]


def test_nobody_else_reads_a_file_of_options(tmp_path: Path) -> None:
    write_properties(tmp_path / "file", {"password": "secret"})
    assert (tmp_path / "file").stat().st_mode & 0o077 == 0


@given(passwords=st.dictionaries(st.from_regex(USER_NAME, fullmatch=True), VALUES, min_size=1))
def test_users_of_plain_have_their_passwords(passwords: dict[str, str]) -> None:
    settings = Security(users=passwords).settings("127.0.0.1:1", "127.0.0.1:2", Path("none"))
    option = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    assert parse_jaas(option, settings[option]).users == passwords


@pytest.mark.parametrize("security", [
    Security(), Security(tls=True), Security(users={"a": "b"}), Security(tls=True, users={"a": "b"}, acls=()),
], ids=["open", "tls", "users", "all"])  # fmt: skip
def test_the_options_of_a_secured_broker_are_valid(tmp_path: Path, security: Security) -> None:
    write_properties(tmp_path / "file", security.settings("127.0.0.1:0", "127.0.0.1:0", tmp_path / "keystore.pem"))
    loaded = load(from_file("file", (tmp_path / "file").read_text()))
    assert loaded.config.bound_listeners[0].security_protocol == security.protocol
    assert not loaded.unused


@pytest.mark.parametrize(("arguments", "message"), [
    ({"acls": []}, "needs users="),
    ({"users": {"two words": "x"}}, "two words"),
    ({"users": {"a": "b"}, "acls": [Acl(user="a", operation="READ")]}, "give one of topic"),
    ({"users": {"a": "b"}, "acls": [Acl(user="a", operation="READ", topic="t", group="g")]}, "give one of topic"),
    ({"settings": {"log.retention.ms = 1": 2}}, "not the name of an option"),
    ({"settings": {"": 2}}, "not the name of an option"),
])  # fmt: skip
def test_arguments_that_make_no_sense_are_told(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Broker(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("brokers", [0, -1, 10])
def test_a_cluster_has_from_one_to_nine_brokers(brokers: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 9"):
        Cluster(brokers)


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (-1, "-1"), ("a, b", "a, b")])
def test_an_option_is_written_as_kafka_has_it(value: str | int | bool, text: str) -> None:
    assert option_text("name", value) == text


def test_operations_are_those_of_the_protocol() -> None:
    assert set(get_args(Operation)) == {"ALL", *(one.name for one in acl.Operation)}


def test_an_entry_is_for_one_resource() -> None:
    assert Acl(user="alice", operation="WRITE", group="g", prefixed=True, allow=False).fields() == {
        "principal": "User:alice", "resource_type": "group", "name": "g", "pattern_type": "prefixed",
        "operation": "write", "permission": "deny", "host": "*",
    }  # fmt: skip
    assert Acl(user="*", operation="ALL", cluster=True).fields()["name"] == "kafka-cluster"


def test_durations_add_up_and_go_forward() -> None:
    assert duration_ms(7, 1, 1, 1, 1) == 608_461_001
    for sums_to_nothing in ((0, 0, 0, 0, 0), (1, -24, 0, 0, 0), (0, -1, 0, 0, 0), (0, 0, 0, 0, 0.4)):
        with pytest.raises(ValueError, match="can only be advanced"):
            duration_ms(*sums_to_nothing)


def test_bytes_of_records_are_bytes() -> None:
    shown = {
        "partition": 2, "offset": 3, "timestamp_ms": 4, "timestamp_type": "create", "key": None,
        "value": {"base64": "/w=="}, "headers": [["trace", "ä"], ["none", None]], "leader_epoch": 0, "producer_id": 5,
        "producer_epoch": 6, "sequence": 7, "transactional": True, "control": False,
    }  # fmt: skip
    headers = (("trace", "ä".encode()), ("none", None))
    assert record_of("t", shown) == Record("t", 2, 3, 4, None, b"\xff", headers, 0, 5, 6, 7, True, False)


def test_the_lag_of_a_group_is_unknown_before_its_first_commit() -> None:
    shown = {"group": "g", "type": "classic", "state": "Stable", "protocol": "range", "members": [], "offsets": []}
    assert group_of(shown).lag() is None
    commits = [
        {"topic": topic, "partition": 0, "offset": 1, "end_offset": 1 + lag, "lag": lag}
        for topic, lag in (("a", 0), ("b", 3))
    ]
    assert [group_of({**shown, "offsets": commits}).lag(topic) for topic in (None, "a", "b", "c")] == [3, 0, 3, None]


def test_a_request_tells_what_it_is_about() -> None:
    shown = {
        "number": 17, "time_ms": 1, "api": "Produce", "version": 13, "client_id": None, "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT", "peer": "127.0.0.1:5", "partitions": [{"topic": "t", "partition": 1}], "groups": [],
        "transactional_ids": [], "fault": "1", "answer": "closed",
    }  # fmt: skip
    request = request_of(shown)
    assert (request.partitions, request.fault, request.answer) == ((Partition("t", 1),), "1", "closed")


def fields_of_page() -> set[str]:
    """Returns the fields of a fault that docs/control.md lists."""
    page = (ROOT / "docs" / "control.md").read_text()
    faults = page[page.index("## Faults") : page.index("## Clock")]
    return set(re.findall(r"^\| `(\w+)` \|", faults, re.MULTILINE))


def test_a_fault_has_the_fields_that_the_page_lists() -> None:
    assert set(FaultFields.__annotations__) == fields_of_page() - {"while_connected"} | {"when"}


def test_a_reserved_port_is_for_listeners_that_ask_for_it_alone() -> None:
    import socket

    reserved = ReservedPort()
    with socket.create_server(("127.0.0.1", reserved.number)) as server:
        assert server.getsockname()[1] == reserved.number
    with socket.create_server(("127.0.0.1", reserved.number)) as again:
        assert again.getsockname()[1] == reserved.number
    others = [ReservedPort() for _ in range(50)]
    assert reserved.number not in {other.number for other in others}
    for port in (reserved, *others):
        port.release()


def test_nothing_is_imported_that_nobody_asked_for() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import odradek.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before)); import odradek.testing, odradek.testing.fixtures; "
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    plugin, everything = ended.stdout.splitlines()
    assert plugin.split() == ["odradek", "odradek.pytest_plugin"]
    assert not {
        "broker",
        "client",
        "programs",
        "protocol",
        "storage",
        "coordinator",
        "commands",
        "uvloop",
    } & set(everything.split())
