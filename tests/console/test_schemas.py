"""Tests records whose keys and values have schemas, of a registry and of files: shown, filtered, masked, downloaded."""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import cbor2
import fastavro
import msgpack
import pytest

from odradek.testing import Broker
from tests.client.schema_registry import Registry, running_registry
from tests.console.browser import Browser, ConsoleProcess, console_line, produce, running_console
from tests.console.test_documents import proto_file
from tests.console.test_records import iter_until_done

LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "number", "type": "long"}, {"name": "line", "type": "Line"}],
}
AVRO_ID, PROTOBUF_ID, JSON_ID, HIDDEN_ID, BROKEN_ID = 7, 8, 9, 10, 11
NAMES = count()


def order(number: int, sku: str) -> bytes:
    """Returns an order in Avro, without a head."""
    stream = BytesIO()
    named: dict[str, dict[Any, Any]] = {}
    fastavro.parse_schema(LINE, named_schemas=named)
    fastavro.schemaless_writer(
        stream,
        fastavro.parse_schema(ORDER, named_schemas=named),
        {"number": number, "line": {"sku": sku}},
    )
    return stream.getvalue()


def head(number: int) -> bytes:
    return b"\x00" + number.to_bytes(4, "big")


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with running_registry() as registry:
        registry.add(AVRO_ID, ORDER, references=[{"name": "Line", "subject": "a/line", "version": 3}])
        registry.versions["a%2Fline", "3"] = {"schema": json.dumps(LINE), "id": 70, "version": 3}
        registry.add(PROTOBUF_ID, 'syntax = "proto3";', schemaType="PROTOBUF")
        registry.serialized[PROTOBUF_ID] = proto_file().SerializeToString()
        registry.add(JSON_ID, {"type": "object"}, schemaType="JSON")
        registry.raw[f"/schemas/ids/{HIDDEN_ID}"] = (302, b"http://127.0.0.1:1/elsewhere")
        registry.raw[f"/schemas/ids/{BROKEN_ID}"] = (200, b"<html>")
        yield registry


@pytest.fixture(scope="module")
def console(broker: Broker, registry: Registry) -> Iterator[ConsoleProcess]:
    """A console with a registry, and with a mask."""
    options = ("--schema-registry", registry.url, "--mask", r"card-\d+")
    with running_console(broker.bootstrap, *options) as process:
        yield process


@pytest.fixture
def browser(console: ConsoleProcess) -> Browser:
    return console.browser()


def written(broker: Broker, *values: bytes, key: bytes | None = None) -> str:
    """Returns a new topic with records."""
    name = f"schemas-{next(NAMES)}"
    broker.create_topic(name, partitions=1)
    produce(broker.bootstrap, name, values, key=key)
    return name


def test_avro_of_a_registry_is_shown(browser: Browser, broker: Broker, registry: Registry) -> None:
    topic = written(broker, head(AVRO_ID) + order(7, "a-1"), key=head(AVRO_ID) + order(1, "key"))
    words = browser.get(f"/topics/{topic}/records").words
    assert '{"number": 7, "line": {"sku": "a-1"}}' in words
    assert '{"number": 1, "line": {"sku": "key"}}' in words
    assert f"Order (schema {AVRO_ID})" in words
    record = f"/topics/{topic}/records/0/0"
    assert "avro" in browser.get(record).words
    assert '"sku": "a-1"' in browser.get(f"{record}?decode=avro").words
    assert "the schema is avro" in browser.get(f"{record}?decode=protobuf").words
    assert "0000 0000 07" in browser.get(f"{record}?decode=hex").words
    browser.get(record)
    assert registry.requests.count(f"/schemas/ids/{AVRO_ID}") == 1
    assert set(registry.authorizations) == {None}


def test_protobuf_and_json_of_a_registry_are_shown(browser: Browser, broker: Broker) -> None:
    topic = written(broker, head(PROTOBUF_ID) + b"\x00\x08\x07", head(PROTOBUF_ID) + b"\x04\x00\x00\x0a\x03abc",
                    head(JSON_ID) + b'{"n": 1}')  # fmt: skip
    words = browser.get(f"/topics/{topic}/records").words
    assert '{"id": 7}' in words
    assert '{"sku": "abc"}' in words
    assert '{"n": 1}' in words
    assert "protobuf" in browser.get(f"/topics/{topic}/records/0/0").words


def test_documents_are_found_by_path_and_text(browser: Browser, broker: Broker) -> None:
    topic = written(broker, *[head(AVRO_ID) + order(number, f"sku-{number}") for number in range(20)])
    for query in ("json=number%3D13", "json=line.sku%3Dsku-13", "value=%22number%22%3A+13"):
        with browser.events(f"/live/records/{topic}?{query}") as events:
            contents = dict(iter_until_done(events))
        assert "1 match" in contents["progress"]
        assert "sku-13" in contents["records"]


def test_masks_hide_in_documents_as_well(browser: Browser, broker: Broker) -> None:
    topic = written(broker, head(AVRO_ID) + order(7, "card-4111"))
    record = f"/topics/{topic}/records/0/0"
    for path in (f"/topics/{topic}/records", record, f"{record}?decode=text", f"{record}/download"):
        page = browser.get(path).text
        assert "card-4111" not in page
        assert "•••" in page
    assert "card-4111" not in browser.get(f"/topics/{topic}/export").text
    assert b"card-4111".hex(" ", -2) not in browser.get(f"{record}?decode=hex").text
    with browser.events(f"/live/records/{topic}?json=line.sku~4111") as events:
        assert "0 matches" in dict(iter_until_done(events))["progress"]


def test_a_download_has_documents(browser: Browser, broker: Broker) -> None:
    topic = written(broker, head(AVRO_ID) + order(7, "a-1"))
    (line,) = browser.get(f"/topics/{topic}/export").text.splitlines()
    assert json.loads(json.loads(line)["payload"]) == {"number": 7, "line": {"sku": "a-1"}}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (head(404) + b"\x02", "404 Schema not found"),
        (head(AVRO_ID) + b"\x02\xff\xff\xff", "no Order"),
        (head(AVRO_ID) + order(1, "x") + b"\x00", "1 bytes follow it"),
        (head(PROTOBUF_ID) + b"\x10\x00", "the indexes of the message"),
        (head(HIDDEN_ID) + b"x", "with 302"),
        (head(BROKEN_ID) + b"x", "without a JSON object"),
    ],
)
def test_what_cannot_be_decoded_is_shown_with_the_reason(
    browser: Browser, broker: Broker, value: bytes, reason: str
) -> None:
    topic = written(broker, value)
    assert reason in browser.get(f"/topics/{topic}/records").words
    page = browser.get(f"/topics/{topic}/records/0/0")
    assert page.status == 200
    assert reason in page.words
    assert value[:5].hex(" ", -2) in page.words


def test_ids_of_strangers_cost_few_requests(browser: Browser, broker: Broker, registry: Registry) -> None:
    topic = written(broker, *[head(100_000 + number) + b"x" for number in range(450)])
    before = len(registry.requests)
    page = browser.get(f"/topics/{topic}/records?limit=500").words
    assert "too many ids of schemas in a minute" in page
    assert len(registry.requests) - before <= 300


def test_a_registry_that_is_away_is_said(broker: Broker) -> None:
    topic = written(broker, *[head(number) + b"x" for number in range(40)], b"plain")
    with running_console(broker.bootstrap, "--schema-registry", "http://127.0.0.1:1") as console:
        page = console.browser().get(f"/topics/{topic}/records").words
    assert page.count("the registry at 127.0.0.1:1 did not answer") == 40
    assert "plain" in page


def test_a_registry_gets_its_password(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    topic = written(broker, head(AVRO_ID) + order(7, "a-1"))
    (tmp_path / "login").write_text("ana:secret-of-ana\n")
    options = ("--schema-registry", registry.url + "/", "--schema-registry-login", str(tmp_path / "login"))
    with running_console(broker.bootstrap, *options) as console:
        assert '"sku": "a-1"' in console.browser().get(f"/topics/{topic}/records").words
    assert registry.authorizations[-1] == f"Basic {b64encode(b'ana:secret-of-ana').decode()}"
    registry.authorizations.clear()


def test_schemas_of_files_need_no_registry(broker: Broker, tmp_path: Path) -> None:
    schema = {**ORDER, "fields": [ORDER["fields"][0], {"name": "line", "type": LINE}]}
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    topic = written(broker, order(7, "a-1"), head(9) + order(8, "b-2"), b"broken")
    with running_console(broker.bootstrap, "--value-schema", f"{topic}={tmp_path}/order.avsc") as console:
        words = console.browser().get(f"/topics/{topic}/records").words
    assert '{"number": 7, "line": {"sku": "a-1"}}' in words
    assert '{"number": 8, "line": {"sku": "b-2"}}' in words
    assert "no Order (order.avsc)" in words


def test_formats_without_a_schema_are_shown(browser: Browser, broker: Broker) -> None:
    document = {"name": "Ana", "lines": [1, 2]}
    topic = written(broker, msgpack.packb(document), cbor2.dumps(document), cbor2.dumps([1, "x"]))
    words = browser.get(f"/topics/{topic}/records").words
    assert words.count('{"name": "Ana", "lines": [1, 2]}') == 2
    assert "msgpack" in words
    assert "cbor" in words
    assert '[ 1, "x" ]' in browser.get(f"/topics/{topic}/records/0/2?decode=cbor").words
    assert "not MessagePack" in browser.get(f"/topics/{topic}/records/0/2?decode=msgpack").words
    assert "name a registry" not in browser.get(f"/topics/{topic}/records/0/0?decode=avro").words
    with browser.events(f"/live/records/{topic}?json=name%3DAna") as events:
        assert "2 matches" in dict(iter_until_done(events))["progress"]


def test_a_url_that_is_none_is_rejected_without_its_password() -> None:
    words = console_line("--schema-registry", "ftp://ana:secret@registry")
    ended = subprocess.run(words, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert "--schema-registry 'registry': expected http://HOST:PORT" in ended.stderr
    assert "secret" not in ended.stderr


def test_a_wrong_schema_stops_the_start() -> None:
    ended = subprocess.run(console_line("--value-schema", "x"), capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert "expected TOPIC=FILE" in ended.stderr
