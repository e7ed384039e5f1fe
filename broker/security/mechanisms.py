"""The SASL mechanisms of a listener, as its options and the metadata log have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from broker.config import BrokerConfig
from broker.config.listener_security import PLAIN, MechanismOptions, mechanisms_of
from broker.security.authentication import SaslMechanism
from coordinator.cluster.image import Image
from coordinator.cluster.scram import MECHANISMS
from protocol.metadata_records.security import UserScramCredentialRecord
from protocol.sasl.exchange import ServerExchange
from protocol.sasl.plain import PlainServer
from protocol.sasl.scram import Credential, ScramServer, base36

NONCE_BYTES = 20
SECRET_BYTES = 32


def mechanisms(
    config: BrokerConfig, listener: str, image: Image, draw: Callable[[int], bytes]
) -> dict[str, SaslMechanism]:
    """Returns the mechanisms of a listener, by name; `draw` returns random bytes. Raises ConfigError."""
    secret = draw(SECRET_BYTES)
    return {
        one.name: SaslMechanism(_beginner(one, image, draw, secret), one.max_reauth_ms)
        for one in mechanisms_of(config, listener)
    }


def _beginner(
    mechanism: MechanismOptions, image: Image, draw: Callable[[int], bytes], secret: bytes
) -> Callable[[], ServerExchange]:
    if mechanism.login is not None and mechanism.name == PLAIN:
        return partial(PlainServer, mechanism.login.users)
    find = partial(scram_credential, image, MECHANISMS[mechanism.name].code)

    def begin() -> ServerExchange:
        return ScramServer(mechanism.name, find, base36(int.from_bytes(draw(NONCE_BYTES))), secret)

    return begin


def scram_credential(image: Image, mechanism: int, user: str) -> Credential | None:
    """Returns a user's keys for a mechanism, as the metadata log has them."""
    record = image.other_records.get(("scram", user, mechanism))
    if not isinstance(record, UserScramCredentialRecord):
        return None
    return Credential(record.salt, record.stored_key, record.server_key, record.iterations)
