"""Tests the rules that map a certificate's subject to a principal, as SslPrincipalMapper applies them."""

from __future__ import annotations

import pytest

from broker.security.principal_rules import PrincipalRules
from protocol.config import ConfigError

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
ADMIN = "CN=Adm,OU=Admin,O=Org,L=Town,ST=St,C=US"


@pytest.mark.parametrize(("rules", "subject", "name"), [
    ("DEFAULT", DUKE, DUKE),
    ("", DUKE, DUKE),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", DUKE, "Duke"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", DUKE, "duke"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U,DEFAULT", DUKE, "DUKE"),
    ("RULE:^cn=(.*?),ou=x$/$1/, RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=.*$/$1@$2/L, DEFAULT", ADMIN, "adm@admin"),
    ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT", "CN=JDoe,C=US", "jdoe"),
    ("RULE:^CN=(?<name>[^,]*).*$/$1/", DUKE, "Duke"),
    ("RULE:CN=Duke/x/", DUKE, None),
    ("RULE:^CN=(.).*$/$1@$4/", DUKE, "D@$4"),
    ("RULE:^CN=(.).*$/$12/", DUKE, "D2"),
    (f"RULE:^CN=(.).*$/$1{'2' * 5_000}/", DUKE, "D" + "2" * 5_000),
    (f"RULE:^CN=(.).*$/${'0' * 5_000}1/", DUKE, "D"),
    (r"RULE:^CN=([^,]*)\/.*$/$1\/x/", "CN=a/b,C=US", "a/x"),
    ("RULE:.*/fixed/", DUKE, "fixedfixed"),
    ("RULE:^.*$/fixed/", DUKE, "fixed"),
    ("RULE:(.*)/ssl-$1/", DUKE, f"ssl-{DUKE}ssl-"),
    ("RULE:CN=(.*?)(,.*)?/$1/", DUKE, "Duke,OU=ServiceUsers,O=Org,C=US"),
    (r"RULE:^CN=(\w+),.*$/$1/", "CN=\u0430dmin,O=Org", None),
    ("RULE:^CN=(?<n>[^,]*).*$/${n}!/", DUKE, "Duke!"),
    (r"RULE:^CN=(?<n>[^,]*).*$/\${n}/", DUKE, "${n}"),
])  # fmt: skip
def test_the_first_rule_that_matches_gives_the_name(rules: str, subject: str, name: str | None) -> None:
    assert PrincipalRules(rules).name(subject) == name


@pytest.mark.parametrize("rules", [
    "RULE:a", "DEFAULT/L", "RULE:a/b/X", "RULE:(/b/", "default", "RULE:a/b", "RULE:(?<n>a)/${m}/",
    "RULE:[a-z&&[^b]]/x/", f"RULE:{'(' * 5_000}{')' * 5_000}/x/", f"RULE:a{{{'9' * 5_000}}}/x/",
])  # fmt: skip
def test_a_rule_that_is_none_is_told(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl.principal.mapping.rules: "):
        PrincipalRules(rules)
