"""The sources of a connection's settings. Later sources override earlier ones:

    defaults · the profile in force · ODRADEK_BOOTSTRAP · --profile · --config (client.properties) · --set · --bootstrap

The names are those of Kafka's Java clients; librdkafka's spellings are accepted too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from cli.parser import did_you_mean
from commands.errors import CommandError, misuse
from commands.files import exists, profiles_path, read_text
from protocol.config import ConfigError
from protocol.lazy import lazy
from protocol.properties import read_properties

if TYPE_CHECKING:
    import tomllib
else:  # with the first profile
    tomllib = lazy("tomllib")

BOOTSTRAP: Final = "bootstrap.servers"
BOOTSTRAP_VARIABLE: Final = "ODRADEK_BOOTSTRAP"
PROFILE_VARIABLE: Final = "ODRADEK_PROFILE"
DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"

DEFAULTS: Final[dict[str, str]] = {
    BOOTSTRAP: DEFAULT_BOOTSTRAP,
    "client.id": "odradek",
    "request.timeout.ms": "30000",
    "socket.connection.setup.timeout.ms": "3000",
    "security.protocol": "PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "",
    "sasl.password": "",
    "sasl.jaas.config": "",
    "ssl.truststore.location": "",
    "ssl.truststore.certificates": "",
    "ssl.truststore.type": "PEM",
    "ssl.keystore.location": "",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.key": "",
    "ssl.keystore.certificate.chain": "",
    "ssl.certificate.location": "",
    "ssl.key.location": "",
    "ssl.key.password": "",
    "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
    "ssl.cipher.suites": "",
    "ssl.endpoint.identification.algorithm": "https",
    "enable.ssl.certificate.verification": "true",
}
"""The settings of a connection, and their defaults."""

ALIASES: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "metadata.broker.list": BOOTSTRAP,
    "socket.connection.setup.timeout": "socket.connection.setup.timeout.ms",
}
"""librdkafka's names of the same settings."""


class ClientSetting(NamedTuple):
    """A value, and the source that an error names if the value is invalid."""

    value: str
    source: str


class Given(NamedTuple):
    """The connection options of a command line."""

    bootstrap: str | None
    profile: str | None
    file: str | None
    assignments: Iterable[str]


def gather(given: Given, environ: Mapping[str, str]) -> dict[str, ClientSetting]:
    """Returns the settings in force, by Java's names. Raises CommandError if a source can't be read."""
    settings = {name: ClientSetting(value, "the default") for name, value in DEFAULTS.items()}
    path = profiles_path(environ)
    in_force = environ.get(PROFILE_VARIABLE)
    if given.profile is None and (in_force or exists(path)):
        settings |= of_profile(path, in_force)
    if bootstrap := environ.get(BOOTSTRAP_VARIABLE):
        settings[BOOTSTRAP] = ClientSetting(bootstrap, BOOTSTRAP_VARIABLE)
    if given.profile is not None:
        settings |= of_profile(path, given.profile)
    if given.file is not None:
        settings |= of_file(given.file)
    settings |= of_assignments(given.assignments)
    if given.bootstrap is not None:
        settings[BOOTSTRAP] = ClientSetting(given.bootstrap, "--bootstrap")
    return settings


def of_profile(path: str, name: str | None) -> dict[str, ClientSetting]:
    """Returns the settings of a profile. Without a name, those of the file's `default` profile, if it has one."""
    profiles = read_profiles(path)
    chosen = profiles.get("default") if name is None else name
    if chosen is None:
        return {}
    profile = profiles.get(str(chosen))
    if not isinstance(profile, dict):
        names = ", ".join(name for name, value in profiles.items() if isinstance(value, dict)) or "none"
        raise misuse(f"{path} has no profile {chosen}; it has: {names}")
    values = _flat(profile)
    for setting in values:
        check_known(setting, f"profile {chosen} in {path}: {setting}")
    return _renamed(values, f"profile {chosen} in {path}")


def check_known(name: str, what: str) -> None:
    """Raises CommandError, which begins with `what`, if a name is not a connection setting."""
    if ALIASES.get(name, name) not in DEFAULTS:
        advice = did_you_mean(name, [*DEFAULTS, *ALIASES], least=0.75) or "; the settings are " + ", ".join(DEFAULTS)
        raise misuse(f"{what}: not a connection setting{advice}")


def of_file(path: str) -> dict[str, ClientSetting]:
    """Returns the settings of a client.properties. Settings of producers and consumers in it are ignored, as Java's
    tools do."""
    try:
        properties = {entry.name: entry.value for entry in read_properties(read_text(path, "--config"))}
    except ConfigError as error:
        raise misuse(f"--config {path} {error.message}") from None
    return _renamed(properties, path)


def of_assignments(assignments: Iterable[str]) -> dict[str, ClientSetting]:
    """Returns the settings of `--set NAME=VALUE`. Raises CommandError if the name is not a connection setting."""
    values: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise misuse(f"--set {assignment}: expected NAME=VALUE, such as --set client.id=me")
        check_known(name, f"--set {name}")
        values[name] = value
    return _renamed(values, "--set")


def _renamed(values: Mapping[str, str], source: str) -> dict[str, ClientSetting]:
    return {ALIASES.get(name, name): ClientSetting(value, source) for name, value in values.items()}


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Returns a TOML table with dotted names: TOML reads `a.b = 1` as a table within a table."""
    flat: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            flat[prefix + name] = ",".join(map(str, value))
        else:
            flat[prefix + name] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


def profile_names(environ: Mapping[str, str]) -> list[str]:
    """Returns the names of profiles; none if their file can't be read, because a shell can't show the error."""
    path = profiles_path(environ)
    if not exists(path):
        return []
    try:
        return [name for name, value in read_profiles(path).items() if isinstance(value, dict)]
    except CommandError:
        return []


def read_profiles(path: str) -> dict[str, object]:
    """Returns the content of the profiles file. Raises CommandError."""
    return parse_profiles(read_text(path, "profiles in"), path)


def parse_profiles(text: str, path: str) -> dict[str, object]:
    """Returns the content of a profiles file's text. Raises CommandError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise misuse(f"{path}: {error}") from None
