"""The sources of the broker's configuration, and their precedence.

From the weakest: defaults, the server.properties file, the environment (KAFKA_LOG_RETENTION_MS, as in Apache's image),
--set, then --data and --listen. If a stronger source sets an option in another unit (log.retention.hours over
log.retention.ms), it replaces the weaker source's value.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.config.listener_options import listener_option
from broker.config.unsupported import NOT_CONFIGURATION, NOT_CONFIGURATION_PREFIXES, why_ignored, why_refused
from protocol.config import ConfigError
from protocol.lazy import lazy
from protocol.numbers import port_number
from protocol.properties import read_properties

if TYPE_CHECKING:
    import difflib
else:  # with the first error
    difflib = lazy("difflib")

ALIASES = (("node.id", "broker.id"), ("log.dirs", "log.dir"))


class Setting(NamedTuple):
    """An option and its value from one source."""

    name: str
    value: str
    source: str


class Unused(NamedTuple):
    """A Kafka option that a source sets and that has no effect here."""

    setting: Setting
    reason: str


class Loaded(NamedTuple):
    """A valid configuration, and the settings without effect."""

    config: BrokerConfig
    unused: tuple[Unused, ...]


class ConfigProblems(Exception):
    """The problems of a configuration, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def from_file(path: str, text: str) -> list[Setting]:
    """Returns the settings of a server.properties file. Raises ConfigProblems if it can't be parsed."""
    try:
        return [Setting(name, value, f"{path} line {line}") for name, value, line in read_properties(text)]
    except ConfigError as error:
        raise ConfigProblems([f"{path} {error}"]) from None


def from_environment(environ: Mapping[str, str]) -> list[Setting]:
    """Returns the settings in environment variables. KAFKA_X_Y is x.y, `__` stands for an underscore, `___` for a
    dash.
    """
    return [
        Setting(_option_name(key), value, f"environment {key}")
        for key, value in environ.items()
        if key.startswith("KAFKA_") and key not in NOT_CONFIGURATION and not key.startswith(NOT_CONFIGURATION_PREFIXES)
    ]


def _option_name(key: str) -> str:
    dotted = key.removeprefix("KAFKA_").lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")


def from_assignments(assignments: Sequence[str]) -> list[Setting]:
    """Returns the settings of --set NAME=VALUE. Raises ConfigProblems."""
    split = [(text, *text.partition("=")) for text in assignments]
    if wrong := [text for text, name, equals, _ in split if not (name and equals)]:
        raise ConfigProblems([f"--set {text}: expected NAME=VALUE, such as log.retention.ms=60000" for text in wrong])
    return [Setting(name.strip(), value, "--set") for _, name, _, value in split]


def from_flags(data: str | None, listen: str | None) -> list[Setting]:
    """Returns the settings of --data DIR and --listen HOST:PORT. Raises ConfigProblems."""
    settings = [Setting("log.dirs", data, "--data")] if data is not None else []
    if listen is not None:
        host, colon, port = listen.rpartition(":")
        if not colon or port_number(port) is None:
            raise ConfigProblems(
                [f"--listen {listen}: is not HOST:PORT, such as 127.0.0.1:9092; port 0 picks a free port"]
            )
        settings.append(Setting("listeners", f"PLAINTEXT://{host}:{port}", "--listen"))
    return settings


def load(
    file: Sequence[Setting] = (),
    environment: Sequence[Setting] = (),
    assignments: Sequence[Setting] = (),
    flags: Sequence[Setting] = (),
) -> Loaded:
    """Returns the configuration from the sources; a later source takes precedence. Raises ConfigProblems."""
    if any(setting.source == "--listen" for setting in flags):
        file = [
            setting for setting in file if setting.name != "advertised.listeners"
        ]  # they belong to the file's own listeners
    settings = _merged((file, environment, assignments, flags))
    unused = tuple(
        Unused(setting, reason) for setting in settings.values() if (reason := why_ignored(setting.name)) is not None
    )
    for ignored in unused:
        del settings[ignored.setting.name]
    if problems := list(_problems(settings.values())):
        raise ConfigProblems(problems)
    return Loaded(_config(settings), unused)


def load_only(names: Container[str], *sources: Sequence[Setting]) -> BrokerConfig:
    """Returns the configuration with these options from the sources; a later source takes precedence. Raises
    ConfigProblems.

    Other options, and combinations of options, are not checked: the file may be Apache Kafka's configuration.
    """
    settings = {name: setting for name, setting in _merged(sources).items() if name in names}
    if problems := list(_problems(settings.values())):
        raise ConfigProblems(problems)
    texts = {name: setting.value for name, setting in settings.items()}
    try:
        return BrokerConfig.build(BrokerConfig.values(texts), texts, check=False)
    except ConfigError as error:
        raise ConfigProblems([f"{_source_prefix(error, settings)}{error}"]) from None


def _merged(sources: Iterable[Sequence[Setting]]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for source in sources:
        for setting in source:
            for other in _equivalent_names(setting.name):
                if (weaker := settings.get(other)) is not None and weaker not in source:
                    del settings[other]
        settings.update({setting.name: setting for setting in source})
    return settings


def _equivalent_names(name: str) -> tuple[str, ...]:
    declared = BrokerConfig.OPTIONS.get(name)
    aliases = next((names for names in ALIASES if name in names), ())
    return aliases or (declared.synonyms if declared is not None else ())


def _problems(settings: Iterable[Setting]) -> Iterator[str]:
    for name, value, source in settings:
        declared = BrokerConfig.OPTIONS.get(name)
        if declared is None and (own := listener_option(name)) is not None:
            declared = own.option
        if declared is None:
            reason = why_refused(name)
            if reason is None:
                yield f"{source}: {name}: unknown option{_suggestion(name)}"
            elif value.strip():
                yield f"{source}: {name}: {reason}"
            continue
        try:
            declared.parse(value)
        except ConfigError as error:
            yield f"{source}: {error}"


def _suggestion(name: str) -> str:
    near = difflib.get_close_matches(name, BrokerConfig.OPTIONS, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _config(settings: Mapping[str, Setting]) -> BrokerConfig:
    texts = {name: setting.value for name, setting in settings.items() if why_refused(name) is None}
    try:
        config = BrokerConfig.build(BrokerConfig.values(texts), texts, check=False)
        problems = list(config.contradictions())
    except ConfigError as error:
        problems = [error]
    if problems:
        raise ConfigProblems([f"{_source_prefix(problem, settings)}{problem}" for problem in problems])
    return config


def _source_prefix(problem: ConfigError, settings: Mapping[str, Setting]) -> str:
    """Returns the prefix of a problem: the source of the first setting that its text mentions."""
    mentioned = (settings.get(word.rstrip(":,")) for word in problem.message.split())
    first = next((setting for setting in mentioned if setting is not None), None)
    return f"{first.source}: " if first is not None else ""
