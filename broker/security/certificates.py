"""Makes TLS contexts from a listener's options.

Keys are never written to a disk: OpenSSL gets them in memory. Source:
org.apache.kafka.common.security.ssl.DefaultSslEngineFactory, KIP-651.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from broker.security.key_stores import KeyStore, TlsSettings, key_store, trust_store
from protocol.config import ConfigError

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
SUITES_OF_13: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})


def server_context(options: TlsSettings) -> ssl.SSLContext:
    """Returns the context of a listener. Raises ConfigError, which names the invalid option and no secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = CLIENT_AUTH[options.ssl_client_auth]
    _restrict(context, options)
    if not _load_key(context, options):
        name = "ssl.keystore.location"
        raise ConfigError(f"{name}: a listener with TLS needs a key: {name}, or ssl.keystore.key in PEM", name=name)
    if context.verify_mode is not ssl.CERT_NONE:
        _load_trust(context, options)
    return context


def client_context(options: TlsSettings) -> ssl.SSLContext:
    """Returns the TLS context for connections to other nodes. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = options.ssl_endpoint_identification_algorithm.lower() == "https"
    _restrict(context, options)
    _load_key(context, options)
    _load_trust(context, options)
    return context


def _restrict(context: ssl.SSLContext, options: TlsSettings) -> None:
    """Sets the TLS versions and cipher suites, and forbids renegotiation, with which a client can cause much work."""
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    versions = [_version(name) for name in options.ssl_enabled_protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    if options.ssl_cipher_suites:
        _set_ciphers(context, options.ssl_cipher_suites)


def _version(name: str) -> ssl.TLSVersion:
    if name not in VERSIONS:
        option = "ssl.enabled.protocols"
        raise ConfigError(
            f"{option}: {name} is not one of {', '.join(VERSIONS)}; older versions are insecure", name=option
        )
    return VERSIONS[name]


def _set_ciphers(context: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    name = "ssl.cipher.suites"
    of_13 = SUITES_OF_13.intersection(suites)
    if of_13 and of_13 != SUITES_OF_13 and context.maximum_version is ssl.TLSVersion.TLSv1_3:
        missing = ", ".join(sorted(SUITES_OF_13 - of_13))
        problem = f"either all or none of the suites of TLS 1.3 must be listed; missing are {missing}"
        raise ConfigError(f"{name}: {problem}. Listing none of them allows only TLS 1.2", name=name)
    others = [openssl_suite(suite) for suite in suites if suite not in SUITES_OF_13]
    if not of_13:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if not others:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(others))
    except ssl.SSLError:
        problem = f"OpenSSL supports none of {', '.join(suites)}"
        raise ConfigError(f"{name}: {problem}; names are Java's, or OpenSSL's", name=name) from None


def openssl_suite(name: str) -> str:
    """Returns OpenSSL's name of a cipher suite with Java's name: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is
    ECDHE-RSA-AES128-GCM-SHA256."""
    if not name.startswith("TLS_"):
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_", "AES").replace("_CBC_", "_").removesuffix("_SHA256" if "POLY" in cipher else "")
    return "-".join(([] if exchange == "RSA" else [exchange]) + [cipher]).replace("_", "-")


def _load_key(context: ssl.SSLContext, options: TlsSettings) -> bool:
    """Loads key and certificates; False if there are none."""
    store = key_store(options)
    if store is None:
        return False
    with _file_in_memory(store.pem) as path:
        _load_chain(context, store, path)
    return True


@contextmanager
def _file_in_memory(data: bytes) -> Iterator[str]:
    """Yields the path of a file that is only in memory: OpenSSL reads a complete PEM only from files."""
    descriptor = os.memfd_create("pem")
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _load_chain(context: ssl.SSLContext, store: KeyStore, path: str) -> None:
    try:
        context.load_cert_chain(path, password=lambda: store.password)  # without it OpenSSL would ask the terminal
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{store.option}: {store.where}: no private key with its certificates as PEM: {_reason(error)}",
            name=store.option,
        ) from None


def _load_trust(context: ssl.SSLContext, options: TlsSettings) -> None:
    """Loads the trusted authorities; the system's if none are configured."""
    store = trust_store(options)
    if store is None:
        context.load_default_certs()
        return
    try:
        with _file_in_memory(store.pem) as path:
            context.load_verify_locations(cafile=path)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # each entry is trusted by itself, as in Java
    except (OSError, ValueError) as error:
        problem = f"{store.option}: {store.where}: no certificates as PEM: {_reason(error)}"
        raise ConfigError(problem, name=store.option) from None


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or "it cannot be read"
