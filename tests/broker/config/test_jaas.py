"""Tests JAAS lines that operators use with Apache Kafka."""

from __future__ import annotations

import pytest

from broker.config.jaas import PLAIN_MODULE, parse_jaas
from protocol.config import ConfigError

NAME = "listener.name.a.plain.sasl.jaas.config"


@pytest.mark.parametrize(("options", "parsed"), [
    ('username="a" password="b"', {"username": "a", "password": "b"}),
    ("username=a password='b c'", {"username": "a", "password": "b c"}),
    (r'password="a\"b\\c\t\101"', {"password": 'a"b\\c\tA'}),
    ('user_a.b-c="x;y=z" // comment\n user_d="e"', {"user_a.b-c": "x;y=z", "user_d": "e"}),
    ('/* "quoted" ; */ a = "ü"', {"a": "ü"}),
    ("", {}),
])  # fmt: skip
def test_the_options_of_a_login_module_are_read_as_java_reads_them(options: str, parsed: dict[str, str]) -> None:
    module = parse_jaas(NAME, f"{PLAIN_MODULE} required {options};")
    assert (module.name, module.options) == (PLAIN_MODULE, parsed)


def test_the_users_of_plain_are_those_of_user_options() -> None:
    module = parse_jaas(NAME, 'M required username="u" password="p" user_u="p" user_a_b="q";')
    assert module.users == {"u": "p", "a_b": "q"}
    assert module.login == ("u", "p")
    assert "p" not in repr(module).replace("password", "").replace("M", "")


@pytest.mark.parametrize(("line", "problem"), [
    ("", "LOGINMODULE required"),
    ("M;", "LOGINMODULE required"),
    ('M required password="top-secret"', "not terminated by a semicolon"),
    ('M must password="top-secret";', "control flag"),
    ('M required password "top-secret";', "no value"),
    ("M required password=;", "no value"),
    ("M required password", "no value"),
    ('M required a="top-secret"; N required;', "more than one login module"),
    ('M required a="top-secret;', "quote the value"),
    ("M required a=top-secret%;", "quote the value"),
])  # fmt: skip
def test_a_line_that_is_wrong_is_told_without_its_values(line: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as failed:
        parse_jaas(NAME, line)
    assert failed.value.message.startswith(f"{NAME}: ")
    assert "top-secret" not in failed.value.message
