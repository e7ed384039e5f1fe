"""Stores in PKCS12, as keytool and openssl make them, read as PEM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from protocol.config import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate


def key_pem(name: str, path: str, data: bytes, password: str) -> bytes:
    """Returns the private key of a store and the chain of its certificates; `name` is the option that has the path.
    Raises ConfigError."""
    store = _loaded(name, path, data, password)
    if store.key is None or store.cert is None:
        raise ConfigError(f"{name}: {path}: there is no private key with its certificate in it", name=name)
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    others = [one.certificate for one in store.additional_certs]
    return key + b"".join(one.public_bytes(Encoding.PEM) for one in _chain(store.cert.certificate, others))


def trusted_pem(name: str, path: str, data: bytes, password: str | None) -> bytes:
    """Returns the certificates of a store, all of which are trusted. Raises ConfigError."""
    store = _loaded(name, path, data, password)
    from cryptography.hazmat.primitives.serialization import Encoding

    certificates = [one.certificate for one in (store.cert, *store.additional_certs) if one is not None]
    if not certificates:
        raise ConfigError(f"{name}: {path}: there are no certificates in it", name=name)
    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def _loaded(name: str, path: str, data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ModuleNotFoundError as error:
        way_out = f"pip install 'odradek[pkcs12]', or make PEM of it: openssl pkcs12 -in {path} -nodes"
        raise ConfigError(f"{name}: {path}: PKCS12 needs {error.name}: {way_out}", name=name) from error
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, UnsupportedAlgorithm):  # whose words may be of the password
        raise ConfigError(f"{name}: {path}: it is no PKCS12, or its password is another", name=name) from None


def _chain(leaf: Certificate, others: list[Certificate]) -> Iterator[Certificate]:
    """Yields a certificate, then that of who signed it, and so on: in a store they are in any order."""
    yield leaf
    by_subject = {one.subject: one for one in reversed(others)}
    issuer = by_subject.pop(leaf.issuer, None)
    while issuer is not None:
        yield issuer
        issuer = by_subject.pop(issuer.issuer, None)
