"""Reads PKCS12 stores, as keytool and openssl create them, and returns them as PEM."""

from __future__ import annotations

from collections.abc import Iterator

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates, load_pkcs12
from cryptography.x509 import Certificate

from protocol.config import ConfigError


def key_pem(name: str, path: str, data: bytes, password: str) -> bytes:
    """Returns a store's private key with its certificate chain, as PEM; `name` is the option with the path. Raises
    ConfigError.
    """
    store = _loaded(name, path, data, password)
    if store.key is None or store.cert is None:
        raise ConfigError(f"{name}: {path}: it has no private key with its certificate", name=name)
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    others = [entry.certificate for entry in store.additional_certs]
    return key + b"".join(
        certificate.public_bytes(Encoding.PEM) for certificate in _chain(store.cert.certificate, others)
    )


def trusted_pem(name: str, path: str, data: bytes, password: str | None) -> bytes:
    """Returns the certificates of a store as PEM; all are trusted. Raises ConfigError."""
    store = _loaded(name, path, data, password)
    certificates = [entry.certificate for entry in (store.cert, *store.additional_certs) if entry is not None]
    if not certificates:
        raise ConfigError(f"{name}: {path}: it has no certificates", name=name)
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def _loaded(name: str, path: str, data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, UnsupportedAlgorithm):  # the error's text may contain the password
        raise ConfigError(f"{name}: {path}: it is not a PKCS12 store, or its password is wrong", name=name) from None


def _chain(leaf: Certificate, others: list[Certificate]) -> Iterator[Certificate]:
    """Yields a certificate, then its issuer's, and so on. The store may have them in any order."""
    yield leaf
    by_subject = {certificate.subject: certificate for certificate in reversed(others)}
    issuer = by_subject.pop(leaf.issuer, None)
    while issuer is not None:
        yield issuer
        issuer = by_subject.pop(issuer.issuer, None)
