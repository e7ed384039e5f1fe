"""Tests tickets of a real KDC, accepted by the system's library: valid, expired, of other services, and broken."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from broker.clock import SystemClock
from broker.config.kerberos import TicketOptions
from protocol.config import ConfigError
from protocol.errors import ProtocolError
from protocol.sasl.exchange import ProvenIdentity, SaslError, ServerExchange
from tests.interop.kerberized import started_realm
from tests.interop.realm import OWN, SKEW_S, Realm

if TYPE_CHECKING:
    import gssapi

pytestmark = [pytest.mark.odradek_only, pytest.mark.security]

JAAS = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
NO_LAYER = b"\x01\x00\x00\x00"
HOUR_MS = 3_600_000
GROWTH_BYTES = 8 << 20
"""Maximum growth of a process after thousands of exchanges: less than a kilobyte for each."""


class Place(NamedTuple):
    realm: Realm
    keytabs: Mapping[str, Path]

    def options(self, **changes: Any) -> TicketOptions:
        keytab = str(self.keytabs["kafka/localhost"])
        return TicketOptions(f"kafka/localhost@{OWN}", keytab, ("DEFAULT",), False, JAAS)._replace(**changes)

    def acceptor(self, **changes: Any) -> Callable[[], ServerExchange]:
        from broker.security.kerberos_tickets import acceptor

        return acceptor(self.options(**changes), SystemClock())

    def ticket(self, user: str, lifetime: str = "1h") -> Path:
        return self.realm.log_in(user, self.keytabs[user], lifetime=lifetime)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with started_realm(tmp_path_factory.mktemp("tickets")) as realm:
        names = ("kafka/localhost", "other/localhost", "alice", r"alice\@x")
        yield Place(realm, {name: realm.add(name) for name in names})


def client(cache: Path, service: str = "kafka", *more: str, spnego: bool = False) -> gssapi.SecurityContext:
    """Returns the client's side of an exchange with a ticket; `more` are flags of the context."""
    import gssapi

    mechanism = gssapi.OID.from_int_seq("1.3.6.1.5.5.2") if spnego else gssapi.MechType.kerberos
    credentials = gssapi.Credentials(usage="initiate", store={"ccache": f"FILE:{cache}"}, mechs=[mechanism])
    name = gssapi.Name(f"{service}@localhost", gssapi.NameType.hostbased_service)
    flags = gssapi.RequirementFlag.integrity
    for requirement in more:
        flags |= gssapi.RequirementFlag[requirement]
    return gssapi.SecurityContext(name=name, creds=credentials, usage="initiate", mech=mechanism, flags=flags)


def token(cache: Path, *more: str, service: str = "kafka", spnego: bool = False) -> bytes:
    first = client(cache, service, *more, spnego=spnego).step()
    assert first
    return bytes(first)


def authenticate(side: gssapi.SecurityContext, server: ServerExchange, authzid: bytes = b"") -> ProvenIdentity | None:
    """Runs an exchange as clients do."""
    offer = server.step(bytes(side.step() or b"")).answer
    assert offer is not None
    if not side.complete:
        side.step(offer)
        offer = server.step(b"").answer
        assert offer is not None
    assert side.unwrap(offer).message == NO_LAYER
    return server.step(side.wrap(NO_LAYER + authzid, False).message).identity


@pytest.mark.parametrize("more", [(), ("mutual_authentication",), ("mutual_authentication", "delegate_to_peer")])
def test_a_ticket_proves_its_principal(place: Place, more: tuple[str, ...]) -> None:
    side = client(place.ticket("alice"), "kafka", *more)
    assert authenticate(side, place.acceptor()(), b"somebody else") == ProvenIdentity("alice")


def test_a_session_that_ends_does_so_with_its_ticket(place: Place) -> None:
    now_ms = time.time() * 1000
    identity = authenticate(client(place.ticket("alice")), place.acceptor(session_ends_with_ticket=True)())
    assert identity is not None
    assert identity.expires_ms is not None
    assert -60_000 < identity.expires_ms - now_ms - HOUR_MS < (SKEW_S + 60) * 1000


def test_a_ticket_that_has_ended_is_refused(place: Place) -> None:
    """The clocks' allowed difference is included: two seconds here."""
    cache = place.ticket("alice", lifetime="2s")
    old, end = token(cache), time.monotonic() + 2 + SKEW_S + 1
    while time.monotonic() < end:
        time.sleep(0.1)  # a ticket is told no other time than this
    with pytest.raises(SaslError, match=r"(?i)expired|clock skew"):
        place.acceptor()().step(old)


def test_a_token_is_taken_once(place: Place) -> None:
    """A client that sends it again is disconnected without an answer, as by Apache Kafka, because its network may have
    repeated it."""
    accept, once = place.acceptor(), token(place.ticket("alice"))
    assert accept().step(once).answer
    for _ in range(2):
        with pytest.raises(ProtocolError, match=r"(?i)replay"):
            accept().step(once)


def test_another_key_of_the_keytab_opens_nothing(place: Place, tmp_path: Path) -> None:
    """If two services of this host share a keytab, each accepts only its own tickets."""
    both = tmp_path / "both.keytab"
    both.touch(0o600)
    own, others = (place.keytabs[name].read_bytes() for name in ("kafka/localhost", "other/localhost"))
    both.write_bytes(own + others[2:])  # after the version
    accept = place.acceptor(keytab=str(both))
    assert accept().step(token(place.ticket("alice"))).answer
    with pytest.raises(SaslError, match="the ticket is rejected"):
        accept().step(token(place.ticket("alice"), service="other"))


@pytest.mark.parametrize("more", [(), ("mutual_authentication",)])
def test_no_other_mechanism_is_taken(place: Place, more: tuple[str, ...]) -> None:
    with pytest.raises(SaslError, match="the ticket is rejected"):
        place.acceptor()().step(token(place.ticket("alice"), *more, spnego=True))


@pytest.mark.parametrize("user", [r"alice\@x"])
def test_whose_name_looks_like_another_s_is_refused(place: Place, user: str) -> None:
    """One part of such a principal contains a separator."""
    with pytest.raises(SaslError, match="is not a principal"):
        authenticate(client(place.ticket(r"alice\@x")), place.acceptor()())


def broken(chance: random.Random, right: bytes) -> bytes:
    """Returns a token with an error in it, or other bytes."""
    kind, where = chance.randrange(6), chance.randrange(len(right))
    if kind == 0:
        return right[:where]
    if kind == 1:
        return right + chance.randbytes(chance.choice([1, 100, 100_000]))
    if kind == 2:
        return chance.randbytes(where)
    if kind == 3:
        return b"\x60" + chance.choice([b"\x80", b"\x84\xff\xff\xff\xff", b"\x82\xff\xff", b"\x00"]) + right[where:]
    size = chance.choice([1, 1, 2, 8])
    return right[:where] + chance.randbytes(size) + right[where + size :]


def size_bytes() -> int:
    """Returns the private memory of this process."""
    match = re.search(r"^VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert match
    return int(match[1]) << 10


def test_broken_tokens_let_in_nobody_and_leave_nothing_behind(place: Place) -> None:
    chance, accept = random.Random(1), place.acceptor()
    right = [token(place.ticket("alice")), token(place.ticket("alice"), "mutual_authentication")]
    for one in right:
        assert accept().step(one).answer
    sizes = []
    for _ in range(2):
        for _ in range(10_000):
            server, one = accept(), broken(chance, chance.choice(right))
            with pytest.raises((SaslError, ProtocolError)) as failed:
                server.step(one)
            assert len(str(failed.value)) < 500
            with pytest.raises(SaslError):
                server.step(right[0])
        sizes.append(size_bytes())
    assert sizes[1] - sizes[0] < GROWTH_BYTES


def test_broken_choices_let_in_nobody_else(place: Place) -> None:
    chance, accept, cache = random.Random(2), place.acceptor(), place.ticket("alice")
    for _ in range(300):
        side, server = client(cache), accept()
        offer = server.step(bytes(side.step() or b"")).answer
        assert offer is not None
        side.unwrap(offer)
        message = bytes(side.wrap(NO_LAYER, False).message)
        try:
            taken = server.step(broken(chance, message)).identity
        except SaslError:
            continue
        assert taken == ProvenIdentity("alice")  # how far it is rotated no checksum knows; the choice is the same


def test_exchanges_leave_nothing_behind(place: Place) -> None:
    """Neither do tickets that clients delegate, although the broker doesn't request them."""
    accept, cache, sizes = place.acceptor(), place.ticket("alice"), []
    for _ in range(2):
        for number in range(400):
            more = ("mutual_authentication", "delegate_to_peer") if number % 4 == 0 else ()
            assert authenticate(client(cache, "kafka", *more), accept()) == ProvenIdentity("alice")
        sizes.append(size_bytes())
    assert sizes[1] - sizes[0] < GROWTH_BYTES


def test_a_keytab_that_is_of_no_use_stops_the_start(place: Place, tmp_path: Path) -> None:
    nonsense, open_to_all = tmp_path / "nonsense", tmp_path / "open"
    for path, mode in ((nonsense, 0o600), (open_to_all, 0o644)):
        path.write_bytes(b"nonsense")
        path.chmod(mode)
    for changes, words in (
        ({"keytab": str(tmp_path / "missing")}, "missing: No such file"),
        ({"keytab": str(open_to_all)}, "other users can read it"),
        ({"keytab": str(nonsense)}, "keyTab .*nonsense, principal kafka/localhost@ODRADEK.TEST: "),
        ({"principal": "kafka/elsewhere@ODRADEK.TEST"}, "principal kafka/elsewhere@ODRADEK.TEST: No key table entry"),
        ({"principal": "*"}, "principal \\*: "),
        ({"rules": ("DEFAULT", "RULE:")}, "Invalid rule: RULE:"),
    ):
        with pytest.raises(ConfigError, match=words) as failed:
            place.acceptor(**changes)
        assert failed.value.name in (JAAS, "sasl.kerberos.principal.to.local.rules")


def test_a_principal_without_a_realm_is_of_the_default_one(place: Place) -> None:
    accept = place.acceptor(principal="kafka/localhost")
    assert authenticate(client(place.ticket("alice")), accept()) == ProvenIdentity("alice")


def test_where_there_is_no_default_realm_nobody_is_of_it(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = tmp_path / "krb5.conf"
    without.write_text(place.realm.config.read_text().replace(f"default_realm = {OWN}", ""))
    cache = place.ticket("alice")
    side = client(cache)
    first = bytes(side.step() or b"")
    monkeypatch.setenv("KRB5_CONFIG", str(without))
    server = place.acceptor()()
    offer = server.step(first).answer
    assert offer is not None
    side.unwrap(offer)
    with pytest.raises(SaslError, match="no rule"):
        server.step(side.wrap(NO_LAYER, False).message)
