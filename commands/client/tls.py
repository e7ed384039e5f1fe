"""The TLS context of a connection, from settings with the names of Java's clients or librdkafka. Keys and certificates
are PEM.

Source: SslConfigs, KIP-651; librdkafka's CONFIGURATION.md.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from broker.security.certificates import client_context
from commands.client.settings import ClientSetting
from commands.errors import misuse
from commands.files import read_bytes
from protocol.config import ConfigError

R = TypeVar("R")

PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)

CONVERT: Final = (
    "only PEM is supported. Convert a Java key store with `keytool -importkeystore -srckeystore STORE -destkeystore "
    "store.p12 -deststoretype PKCS12`, then `openssl pkcs12 -in store.p12 -out store.pem -nodes`"
)

BOOLEANS: Final = {"true": True, "false": False}
IDENTIFICATION: Final = {"https": "https", "none": "", "": ""}
"""The values of the option that compares a broker's certificate with its host name: librdkafka writes "none" for Java's
empty value."""


class ClientTls(NamedTuple):
    """The TLS settings of a client, in the form that `broker.security.certificates` expects; files are already read."""

    ssl_enabled_protocols: tuple[str, ...]
    ssl_cipher_suites: tuple[str, ...]
    ssl_keystore_key: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_key_password: str | None
    ssl_truststore_certificates: str | None
    ssl_endpoint_identification_algorithm: str
    ssl_client_auth: str = "none"
    ssl_keystore_type: str = "PEM"
    ssl_keystore_location: str | None = None
    ssl_keystore_password: str | None = None
    ssl_truststore_type: str = "PEM"
    ssl_truststore_location: str | None = None
    ssl_truststore_password: str | None = None


def tls_context(settings: Mapping[str, ClientSetting]) -> ssl.SSLContext:
    """Returns the TLS context that the settings describe. Raises CommandError, which names the invalid setting and no
    secret."""
    for name in ("ssl.truststore.type", "ssl.keystore.type"):
        if settings[name].value.upper() != "PEM":
            raise misuse(f"{name} {settings[name].value} ({settings[name].source}): {CONVERT}")
    is_verified = _one_of(settings, "enable.ssl.certificate.verification", BOOLEANS)
    key, chain = _own_certificate(settings)
    tls = ClientTls(
        ssl_enabled_protocols=_listed(settings, "ssl.enabled.protocols"),
        ssl_cipher_suites=_listed(settings, "ssl.cipher.suites"),
        ssl_keystore_key=key,
        ssl_keystore_certificate_chain=chain,
        ssl_key_password=settings["ssl.key.password"].value or None,
        ssl_truststore_certificates=_pem(settings, "ssl.truststore.location", "ssl.truststore.certificates"),
        ssl_endpoint_identification_algorithm=_one_of(
            settings, "ssl.endpoint.identification.algorithm", IDENTIFICATION
        ),
    )
    try:
        context = client_context(tls)
    except ConfigError as error:
        sources = sorted({setting.source for name, setting in settings.items() if "ssl." in name and setting.value})
        given = [source for source in sources if source != "the default"]
        raise misuse(f"{error.message} ({', '.join(given) or 'the default'})") from None
    if not is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _own_certificate(settings: Mapping[str, ClientSetting]) -> tuple[str | None, str | None]:
    """Returns the client's own private key and certificate chain, if it has any."""
    store = _pem(settings, "ssl.keystore.location")
    if store is not None:
        return store, ""  # the file has the key and its chain
    key = _pem(settings, "ssl.key.location", "ssl.keystore.key")
    chain = _pem(settings, "ssl.certificate.location", "ssl.keystore.certificate.chain")
    if (key is None) != (chain is None):
        there, missing = ("key", "certificate") if chain is None else ("certificate", "key")
        raise misuse(f"a TLS {there} is set but no {missing}: set ssl.{missing}.location or ssl.keystore.location")
    return key, chain


def _pem(settings: Mapping[str, ClientSetting], location: str, inline: str = "") -> str | None:
    """Returns the PEM of the file that `location` names, or the value of `inline`; None if neither is set."""
    path, source = settings[location]
    if path:
        return _blocks(read_bytes(path, f"{location} ({source})").decode("utf-8", "replace"), f"{location} {path}")
    if not inline or not settings[inline].value:
        return None
    return _blocks(settings[inline].value.replace("\\n", "\n"), f"{inline} ({settings[inline].source})")


def _blocks(text: str, where: str) -> str:
    """Returns the PEM blocks of a file, without the text around them."""
    blocks = [match[0] for match in PEM_BLOCK.finditer(text)]
    if not blocks:
        raise misuse(f"{where}: {CONVERT}")
    return "\n".join(blocks) + "\n"


def _listed(settings: Mapping[str, ClientSetting], name: str) -> tuple[str, ...]:
    """Returns the items of a list, which Java separates by commas and OpenSSL by colons."""
    return tuple(word.strip() for word in re.split("[,:]", settings[name].value) if word.strip())


def _one_of(settings: Mapping[str, ClientSetting], name: str, choices: Mapping[str, R]) -> R:
    value, source = settings[name]
    if value.lower() not in choices:
        expected = " or ".join(word or "nothing" for word in choices)
        raise misuse(f"{name} {value} ({source}): expected {expected}")
    return choices[value.lower()]
