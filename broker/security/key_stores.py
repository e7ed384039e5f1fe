"""Key stores and trust stores from a listener's options: PEM in files or in the options themselves, PKCS12 in files.

Each is passed on as PEM in memory: no key is written to a disk. Source:
org.apache.kafka.common.security.ssl.DefaultSslEngineFactory, KIP-651.
"""

from __future__ import annotations

import os
import re
import ssl
import stat
from typing import Final, NamedTuple, Protocol

from broker.security.named_files import read_named_file
from protocol.config import ConfigError

PEM: Final = "PEM"
TYPES: Final = (PEM, "PKCS12", "JKS")
"""The valid types. As in Java, JKS, which is the default, also reads PKCS12."""

JKS_MAGIC: Final = (bytes.fromhex("feedfeed"), bytes.fromhex("cececece"))
"""The first bytes of a store in Java's own formats, JKS and JCEKS."""

PEM_BEGIN: Final = b"-----BEGIN "
CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
READABLE_BY_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH

MAX_STORE_BYTES: Final = 4 << 20
"""Maximum size of a store. The certificates of all public authorities are 0.3 MB. A larger file would block the event
loop, and a mistyped path may name a log."""

CONVERT: Final = (
    "{name}: {path} is a store of Java's own format (JKS), which is not read here. Convert it: keytool -importkeystore "
    "-srckeystore {path} -destkeystore store.p12 -deststoretype PKCS12, then set {type}=PKCS12"
)


class TlsSettings(Protocol):
    """The options of a listener or a client from which a context is made; each attribute has its option's name."""

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
    def ssl_keystore_password(self) -> str | None: ...
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
    def ssl_truststore_password(self) -> str | None: ...
    @property
    def ssl_truststore_certificates(self) -> str | None: ...
    @property
    def ssl_endpoint_identification_algorithm(self) -> str: ...


class KeyStore(NamedTuple):
    """A private key and its certificate chain."""

    option: str
    """The option that names the store, for error messages."""
    where: str
    pem: bytes
    password: str
    """The private key's password; empty if it has none."""

    def __repr__(self) -> str:
        return f"KeyStore({self.option}, {self.where})"

    @property
    def certificate(self) -> bytes:
        """The key's certificate in DER. Raises ConfigError."""
        match = CERTIFICATE.search(self.pem)
        if match is None:
            raise ConfigError(f"{self.option}: {self.where}: it has no certificate", name=self.option)
        return ssl.PEM_cert_to_DER_cert(match[0].decode("latin-1"))


class TrustStore(NamedTuple):
    """Certificates of authorities, as PEM."""

    option: str
    where: str
    pem: bytes


def key_store(options: TlsSettings) -> KeyStore | None:
    """Returns the key store of a listener; None if it has none. Raises ConfigError."""
    location, inline = options.ssl_keystore_location, options.ssl_keystore_key
    chain, name = options.ssl_keystore_certificate_chain, "ssl.keystore.location"
    kind, password = _kind("ssl.keystore.type", options.ssl_keystore_type), options.ssl_keystore_password
    key_password = options.ssl_key_password or ""
    if inline is not None or chain is not None:
        _check_inline(options, kind)
        pem = f"{_with_lines(inline or '')}\n{_with_lines(chain or '')}\n".encode()
        return KeyStore("ssl.keystore.key", "the option", pem, key_password)
    if location is None:
        if password is not None:
            raise _wrong(name, "SSL key store is not specified, but key store password is specified.")
        return None
    check_private(name, location)
    data = _read(name, location)
    if kind == PEM:
        if password is not None:
            problem = "SSL key store password cannot be specified with PEM format, only key password may be specified"
            raise _wrong("ssl.keystore.password", problem)
        return KeyStore(name, location, data, key_password)
    _check_binary(name, location, data, "ssl.keystore.type", kind)
    if password is None:
        raise _wrong(name, "SSL key store is specified, but key store password is not specified.")
    return KeyStore(name, location, _pkcs12(name, location).key_pem(name, location, data, password), "")


def trust_store(options: TlsSettings) -> TrustStore | None:
    """Returns the trust store of a listener; None if it has none. Raises ConfigError."""
    location, inline = options.ssl_truststore_location, options.ssl_truststore_certificates
    name, type_name, password = "ssl.truststore.location", "ssl.truststore.type", options.ssl_truststore_password
    kind = _kind(type_name, options.ssl_truststore_type)
    if inline is not None:
        if kind != PEM:
            problem = f"SSL trust store certs can be specified only for PEM, but trust store type is {kind}."
            raise _wrong("ssl.truststore.certificates", problem)
        if location is not None:
            problem = "Both SSL trust store location and separate trust certificates are specified."
            raise _wrong("ssl.truststore.certificates", problem)
    if kind == PEM and password is not None:
        raise _wrong("ssl.truststore.password", "SSL trust store password cannot be specified for PEM format.")
    if inline is not None:
        return TrustStore("ssl.truststore.certificates", "the option", _with_lines(inline).encode())
    if location is None:
        if password is not None:
            raise _wrong(name, "SSL trust store is not specified, but trust store password is specified.")
        return None
    data = _read(name, location)
    if kind == PEM:
        return TrustStore(name, location, data)
    _check_binary(name, location, data, type_name, kind)
    return TrustStore(name, location, _pkcs12(name, location).trusted_pem(name, location, data, password))


class _Converter(Protocol):
    """The module pkcs12."""

    def key_pem(self, name: str, path: str, data: bytes, password: str, /) -> bytes: ...

    def trusted_pem(self, name: str, path: str, data: bytes, password: str | None, /) -> bytes: ...


def _pkcs12(name: str, path: str) -> _Converter:
    try:
        from broker.security import pkcs12
    except ModuleNotFoundError as error:
        way_out = f"pip install 'odradek[pkcs12]', or convert it to PEM: openssl pkcs12 -in {path} -nodes"
        raise ConfigError(f"{name}: {path}: PKCS12 needs {error.name}: {way_out}", name=name) from error
    return pkcs12


def _check_inline(options: TlsSettings, kind: str) -> None:
    name = "ssl.keystore.key"
    if options.ssl_keystore_key is None:
        problem = "SSL certificate chain is specified, but private key is not specified"
        raise _wrong("ssl.keystore.certificate.chain", problem)
    if kind != PEM:
        raise _wrong(name, f"SSL private key can be specified only for PEM, but key store type is {kind}.")
    if options.ssl_keystore_certificate_chain is None:
        name = "ssl.keystore.certificate.chain"
        raise _wrong(name, "SSL private key is specified, but certificate chain is not specified.")
    if options.ssl_keystore_location is not None:
        raise _wrong(name, "Both SSL key store location and separate private key are specified.")
    if options.ssl_keystore_password is not None:
        problem = "SSL key store password cannot be specified with PEM format, only key password may be specified."
        raise _wrong("ssl.keystore.password", problem)


def _kind(name: str, kind: str) -> str:
    if kind.upper() not in TYPES:
        raise _wrong(name, f"{kind} is not one of {', '.join(TYPES)}")
    return kind.upper()


def _check_binary(name: str, path: str, data: bytes, type_name: str, kind: str) -> None:
    """Raises ConfigError, with a solution, for a file that isn't PKCS12."""
    if data.startswith(JKS_MAGIC):
        raise ConfigError(CONVERT.format(name=name, path=path, type=type_name), name=name)
    if PEM_BEGIN in data:
        raise ConfigError(f"{name}: {path} is PEM, and {type_name} is {kind}; set {type_name}=PEM", name=type_name)


def _read(name: str, path: str) -> bytes:
    try:
        return read_named_file(path, MAX_STORE_BYTES)
    except OSError as error:
        raise ConfigError(f"{name}: {path}: {error.strerror}", name=name) from None


def _with_lines(pem: str) -> str:
    """Returns PEM with line breaks in place of the text \\n."""
    return pem.replace("\\n", "\n")


def _wrong(name: str, problem: str) -> ConfigError:
    return ConfigError(f"{name}: {problem}", name=name)


def check_private(name: str, path: str) -> None:
    """Raises ConfigError if a file with a key can't be read, isn't a regular file, or is readable by others."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise ConfigError(f"{name}: {path}: {error.strerror}", name=name) from None
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{name}: {path}: it is not a regular file", name=name)
    if status.st_mode & READABLE_BY_OTHERS:
        mode = f"mode {status.st_mode & 0o777:03o}"
        raise ConfigError(f"{name}: {path}: other users can read it ({mode}); chmod o= it", name=name)
