"""Tests the rules that derive names from Kerberos principals."""

from __future__ import annotations

import pytest

from broker.security.kerberos_names import LocalNames
from protocol.config import ConfigError
from protocol.sasl.exchange import SaslError

SERVICE = "RULE:[2:$1](App\\..*)s/App\\.(.*)/$1/g"


@pytest.mark.parametrize(("rules", "principal", "name"), [
    (["DEFAULT"], "alice@REALM", "alice"),
    (["DEFAULT"], "alice/host@REALM", "alice"),
    (["DEFAULT"], "jürgen@REALM", "jürgen"),
    ([SERVICE.replace("2", "1", 1), SERVICE, "DEFAULT"], "App.service/h@REALM", "service"),
    ([SERVICE, "DEFAULT"], "App.service@REALM", "App.service"),
    (["RULE:[1:$1@$0](.*@OTHER)s/@.*//"], "bob@OTHER", "bob"),
    (["RULE:[1:$1@$0](.*@OTHER)s/@.*///L"], "Bob@OTHER", "bob"),
    (["RULE:[1:$1]/U"], "bob@REALM", "BOB"),
    (["RULE:[1:$1]s/a/b/"], "aaa@REALM", "baa"),
    (["RULE:[1:$1]s/a/b/g"], "aaa@REALM", "bbb"),
    (["RULE:[2:$1-$2]"], "kafka/host@REALM", "kafka-host"),
    (["RULE:[1:$1]s/(a)(b)/$2$1/"], "ab@REALM", "ba"),
    (["RULE:[1:$1]s/(a)/$12/"], "a@REALM", "a2"),
    (["RULE:[1:$1]s/(?<who>a+)/<${who}>\\$/"], "aa@REALM", "<aa>$"),
    (["RULE:[1:$1]s/(a)|(b)/x$2/g"], "ab@REALM", "xxb"),
])  # fmt: skip
def test_a_principal_has_the_name_that_the_first_rule_makes(rules: list[str], principal: str, name: str) -> None:
    assert LocalNames(rules, "REALM").name(principal) == name


@pytest.mark.parametrize(("rules", "principal"), [
    (["DEFAULT"], "alice@OTHER"),
    (["DEFAULT"], "alice"),
    (["DEFAULT"], "a/b/c@REALM"),
    (["DEFAULT"], "@REALM"),
    (["DEFAULT"], "alice\\/x@REALM"),           # one part of which a slash is
    (["DEFAULT"], "alice\\@REALM@OTHER"),
    (["DEFAULT"], "alice@REALM@REALM"),
    (["DEFAULT"], "ali\rce@REALM"),
    (["DEFAULT"], "ali\u2028ce@REALM"),
    (["RULE:[1:$1@$0]", "DEFAULT"], "alice@REALM"),     # a rule that makes no name is the last that is asked
    (["RULE:[1:$2]", "DEFAULT"], "alice@REALM"),
    (["RULE:[1:$]", "DEFAULT"], "alice@REALM"),
    (["RULE:[1:$99999999999999999999]"], "alice@REALM"),
    (["RULE:[1:$1](b.*)"], "alice@REALM"),
    (["RULE:[1:$1](lic)"], "alice@REALM"),              # of the whole
    (["RULE:[1:$1]s/alice//"], "alice@REALM"),
    (["RULE:[1:$1]s/a/$1/"], "alice@REALM"),
    (["RULE:[1:$1]s/a/$/"], "alice@REALM"),
    (["RULE:[1:$1]s/a/\\/"], "alice@REALM"),
    (["RULE:[1:$1]s/a/${b}/"], "alice@REALM"),
    ([], "alice@REALM"),
])  # fmt: skip
def test_who_has_no_name_is_nobody(rules: list[str], principal: str) -> None:
    with pytest.raises(SaslError) as failed:
        LocalNames(rules, "REALM").name(principal)
    assert not failed.value.may_be_told


def test_where_there_is_no_default_realm_no_principal_is_of_it() -> None:
    with pytest.raises(SaslError, match=r"sasl\.kerberos\.principal\.to\.local\.rules: no rule matches 'alice@REALM'"):
        LocalNames(["DEFAULT"], "").name("alice@REALM")


def test_a_long_principal_is_not_logged_whole() -> None:
    with pytest.raises(SaslError) as failed:
        LocalNames(["DEFAULT"], "REALM").name("x" * 100_000 + "@OTHER")
    assert len(failed.value.reason) < 400


@pytest.mark.parametrize("rule", [
    "default", "DEFAULT ", "RULE:", "RULE:[1]", "RULE:[:$1]", "RULE:[\u0661:$1]", "RULE:[1:$1](", "RULE:[1:$1](a[)",
    "RULE:[1:$1]x", "RULE:[1:$1]s/(/x/", "RULE:[1:$1](\\p{Alpha}+)", "RULE:[1:$1]([a&&[b]])", "RULE:[1:$1]/LU",
])  # fmt: skip
def test_a_rule_that_is_none_stops_the_start(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.principal\.to\.local\.rules"):
        LocalNames([rule], "REALM")
