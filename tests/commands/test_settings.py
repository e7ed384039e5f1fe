"""Tests the sources of a connection's settings, and their precedence."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.exits import MISUSED
from client.address import Address
from commands.client.connecting import destination, jaas_field
from commands.client.settings import Given, gather
from commands.errors import CommandError

PROFILES = """
default = "local"

[local]
bootstrap.servers = "local:1"

[prod]
"bootstrap.servers" = "prod:1"
client.id = "me"
request.timeout.ms = 5000
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "profiles.toml"
    file.write_text(PROFILES)
    return {"ODRADEK_PROFILES": str(file)}


def given(
    bootstrap: str | None = None, profile: str | None = None, file: str | None = None, *assignments: str
) -> Given:
    return Given(bootstrap, profile, file, assignments)


def bootstrap_of(given: Given, environ: dict[str, str]) -> str:
    return gather(given, environ)["bootstrap.servers"].value


def test_a_broker_of_this_machine_is_the_default(tmp_path: Path) -> None:
    assert bootstrap_of(given(), {"XDG_CONFIG_HOME": str(tmp_path)}) == "127.0.0.1:9092"


def test_each_source_is_stronger_than_those_before_it(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nacks=all\n")
    assert bootstrap_of(given(), environ) == "local:1"
    assert bootstrap_of(given(), {**environ, "ODRADEK_PROFILE": "prod"}) == "prod:1"
    environ["ODRADEK_BOOTSTRAP"] = "environment:1"
    assert bootstrap_of(given(), environ) == "environment:1"
    assert bootstrap_of(given(None, "prod"), environ) == "prod:1"
    assert bootstrap_of(given(None, "prod", str(file)), environ) == "file:1"
    assert bootstrap_of(given(None, "prod", str(file), "bootstrap.servers=x:1"), environ) == "x:1"
    assert bootstrap_of(given("flag:1", "prod", str(file), "bootstrap.servers=x:1"), environ) == "flag:1"


def test_a_profile_has_all_settings_of_a_connection(environ: dict[str, str]) -> None:
    where = destination(gather(given(None, "prod"), environ))
    assert where.bootstrap == (Address("prod", 1),)
    assert where.connection.client_id == "me"
    assert where.timeout_ms == 5000


def test_librdkafkas_names_are_taken(environ: dict[str, str]) -> None:
    assert bootstrap_of(given(None, None, None, "metadata.broker.list=a:1,b:2"), environ) == "a:1,b:2"


JAAS = 'sasl.jaas.config=x.ScramLoginModule required username="ana" password="se\\"cret";'


@pytest.mark.parametrize(
    "assignments",
    [
        ("security.protocol=SASL_PLAINTEXT", "sasl.username=ana", "sasl.password=x", "sasl.mechanism=PLAIN"),
        ("security.protocol=sasl_plaintext", JAAS, "sasl.mechanisms=SCRAM-SHA-256"),
        ("security.protocol=SASL_PLAINTEXT", "sasl.jaas.config=x.PlainLoginModule required username=ana password='x';"),
    ],
)
def test_a_user_is_named_as_java_or_as_librdkafka_names_it(
    environ: dict[str, str], assignments: tuple[str, ...]
) -> None:
    assert len(destination(gather(given(None, None, None, *assignments), environ)).connection.authenticators) == 1


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (given(None, None, None, "client.idd=x"), "did you mean client.id"),
        (given(None, None, None, "client.id"), "NAME=VALUE"),
        (given(None, "test"), "no profile test; it has: local, prod"),
        (given(None, None, "/nowhere/client.properties"), "No such file"),
        (given("host"), "--bootstrap.*HOST:PORT"),
        (given(","), "--bootstrap.*empty"),
        (given(None, None, None, "request.timeout.ms=soon"), "request.timeout.ms soon"),
        (given(None, None, None, "security.protocol=SSSL"), "security.protocol SSSL"),
        (given(None, None, None, "security.protocol=SASL_PLAINTEXT"), "needs sasl.username"),
        (given(None, None, None, "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=X"), "sasl.mechanism X"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_source(environ: dict[str, str], wrong: Given, reason: str) -> None:
    with pytest.raises(CommandError, match=reason) as refused:
        destination(gather(wrong, environ))
    assert refused.value.status == MISUSED


@pytest.mark.parametrize(
    ("line", "password"),
    [
        ('x.Module required username="ana" password="se\\"cret;";', 'se"cret;'),
        ("x.Module required password='a b' username='ana';", "a b"),
        ("x.Module required username=ana password=plain;", "plain"),
        ('x.Module required username="ana" oauth.password="no";', ""),
        ('x.Module required username="ana";', ""),
    ],
)
def test_a_jaas_line_has_its_values_in_quotes_or_without(line: str, password: str) -> None:
    assert jaas_field(line, "password") == password
