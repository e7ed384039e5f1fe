"""Contexts of TLS, out of a listener's options: keys and certificates as PEM, in files or in the options themselves.

Keys never reach a disk: what stands in an option is handed to OpenSSL in memory.
Source: org.apache.kafka.common.security.ssl.DefaultSslEngineFactory, KIP-651.
"""

from __future__ import annotations

import os
import ssl
import stat
from typing import Final, Protocol

from protocol.config import ConfigError


class TlsSettings(Protocol):
    """The options of a listener, or of a client, that a context is made of; each has its option's name."""

    @property
    def ssl_client_auth(self) -> str: ...
    @property
    def ssl_enabled_protocols(self) -> tuple[str, ...]: ...
    @property
    def ssl_cipher_suites(self) -> tuple[str, ...]: ...
    @property
    def ssl_keystore_type(self) -> str: ...
    @property
    def ssl_keystore_location(self) -> str | None: ...
    @property
    def ssl_keystore_key(self) -> str | None: ...
    @property
    def ssl_keystore_certificate_chain(self) -> str | None: ...
    @property
    def ssl_key_password(self) -> str | None: ...
    @property
    def ssl_truststore_type(self) -> str: ...
    @property
    def ssl_truststore_location(self) -> str | None: ...
    @property
    def ssl_truststore_certificates(self) -> str | None: ...
    @property
    def ssl_endpoint_identification_algorithm(self) -> str: ...


PEM: Final = "PEM"
READABLE_BY_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH
CONVERT: Final = (
    "{name} is {type}, and only PEM is read here. Convert it: keytool -importkeystore -srckeystore STORE "
    "-destkeystore store.p12 -deststoretype PKCS12 (of JKS), then openssl pkcs12 -in store.p12 -out store.pem -nodes"
)

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
SUITES_OF_13: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})


def server_context(options: TlsSettings) -> ssl.SSLContext:
    """Returns the context of a listener. Raises ConfigError, which names the option at fault and no secret."""
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
    """Returns the context in which this node connects to others. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = options.ssl_endpoint_identification_algorithm.lower() == "https"
    _restrict(context, options)
    _load_key(context, options)
    _load_trust(context, options)
    return context


def _restrict(context: ssl.SSLContext, options: TlsSettings) -> None:
    """Sets versions and cipher suites; nobody renegotiates, which is work for one side at the wish of the other."""
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    versions = [_version(name) for name in options.ssl_enabled_protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    if options.ssl_cipher_suites:
        _set_ciphers(context, options.ssl_cipher_suites)


def _version(name: str) -> ssl.TLSVersion:
    if name not in VERSIONS:
        option = "ssl.enabled.protocols"
        raise ConfigError(f"{option}: {name} is none of {', '.join(VERSIONS)}; older ones are broken", name=option)
    return VERSIONS[name]


def _set_ciphers(context: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    name = "ssl.cipher.suites"
    of_13 = SUITES_OF_13.intersection(suites)
    if of_13 and of_13 != SUITES_OF_13 and context.maximum_version is ssl.TLSVersion.TLSv1_3:
        missing = ", ".join(sorted(SUITES_OF_13 - of_13))
        problem = f"of the suites of TLS 1.3 all or none can be had; {missing} would be missing"
        raise ConfigError(f"{name}: {problem}. None leaves TLS 1.2 alone", name=name)
    others = [openssl_suite(suite) for suite in suites if suite not in SUITES_OF_13]
    if not of_13:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if not others:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(others))
    except ssl.SSLError:
        problem = f"OpenSSL has none of {', '.join(suites)}"
        raise ConfigError(f"{name}: {problem}; names are Java's, or OpenSSL's", name=name) from None


def openssl_suite(name: str) -> str:
    """Returns OpenSSL's name of a cipher suite that is named as in Java: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is
    ECDHE-RSA-AES128-GCM-SHA256."""
    if not name.startswith("TLS_"):
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_", "AES").replace("_CBC_", "_").removesuffix("_SHA256" if "POLY" in cipher else "")
    return "-".join(([] if exchange == "RSA" else [exchange]) + [cipher]).replace("_", "-")


def _load_key(context: ssl.SSLContext, options: TlsSettings) -> bool:
    """Loads key and certificates; False where there are none."""
    location, password = options.ssl_keystore_location, options.ssl_key_password or ""
    inline = options.ssl_keystore_key
    if location is None and inline is None:
        return False
    _check_type("ssl.keystore.type", options.ssl_keystore_type)
    if location is not None:
        check_private("ssl.keystore.location", location)
        _chain(context, "ssl.keystore.location", location, location, password)
        return True
    chain = options.ssl_keystore_certificate_chain
    if chain is None:
        name = "ssl.keystore.certificate.chain"
        raise ConfigError(f"{name}: ssl.keystore.key needs its certificates there", name=name)
    descriptor = os.memfd_create("key")  # OpenSSL reads files alone; this one is of memory, and has no name
    try:
        os.write(descriptor, f"{_with_lines(inline or '')}\n{_with_lines(chain)}\n".encode())
        _chain(context, "ssl.keystore.key", "the option", f"/proc/self/fd/{descriptor}", password)
    finally:
        os.close(descriptor)
    return True


def _chain(context: ssl.SSLContext, name: str, told_as: str, path: str, password: str) -> None:
    try:
        context.load_cert_chain(path, password=lambda: password)  # without it OpenSSL would ask the terminal
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "it cannot be read"
        raise ConfigError(
            f"{name}: {told_as}: no private key with its certificates as PEM: {reason}", name=name
        ) from None


def _load_trust(context: ssl.SSLContext, options: TlsSettings) -> None:
    """Loads the authorities that are trusted; where none are named, those of the system."""
    location, inline = options.ssl_truststore_location, options.ssl_truststore_certificates
    if location is None and inline is None:
        context.load_default_certs()
        return
    _check_type("ssl.truststore.type", options.ssl_truststore_type)
    name = "ssl.truststore.certificates" if location is None else "ssl.truststore.location"
    try:
        if location is None:
            context.load_verify_locations(cadata=_with_lines(inline or ""))
        else:
            context.load_verify_locations(cafile=location)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "it cannot be read"
        where = "" if location is None else f"{location}: "
        raise ConfigError(f"{name}: {where}no certificates as PEM: {reason}", name=name) from None


def _with_lines(pem: str) -> str:
    """Returns PEM with its lines, which a \\n may stand for."""
    return pem.replace("\\n", "\n")


def _check_type(name: str, kind: str) -> None:
    if kind.upper() != PEM:
        raise ConfigError(f"{name}: {CONVERT.format(name=name, type=kind)}; then set {name}=PEM", name=name)


def check_private(name: str, path: str) -> None:
    """Raises ConfigError where a file with a key cannot be read, or others can read it."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise ConfigError(f"{name}: {path}: {error.strerror}", name=name) from None
    if mode & READABLE_BY_OTHERS:
        raise ConfigError(f"{name}: {path}: others may read it (mode {mode & 0o777:03o}); chmod o= it", name=name)
