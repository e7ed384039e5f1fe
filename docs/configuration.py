"""Writes docs/configuration.md from the declarations of the options: `python -m docs.configuration`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from broker.config import BrokerConfig
from broker.config.throttles import ThrottleOptions
from broker.config.unsupported import IGNORED, PREFIXES, REFUSED
from broker.config.without_effect import WITHOUT_EFFECT
from coordinator.group.config import GroupConfig
from coordinator.telemetry.config import ClientMetricsConfig
from protocol.config import Config, Option
from storage.config import LogConfig

PAGE = Path(__file__).with_suffix(".md")

INTRODUCTION = """\
# Configuration

<!-- Written by `python -m docs.configuration` from the declarations in the source; edit those. -->

Options have the names, types, defaults and bounds of Apache Kafka 4.4, so that a `server.properties` of Apache Kafka
works with Odradek. They come from these sources; a later source wins:

1. the defaults below;
2. the file given to `odradek run server.properties`, in Java's properties format;
3. environment variables as in Apache's image: `KAFKA_LOG_RETENTION_MS` is `log.retention.ms`, two underscores stand for
   one, three for a dash;
4. `--set NAME=VALUE`;
5. `--data DIR` (`log.dirs`) and `--listen HOST:PORT` (`listeners`, in place of the file's `advertised.listeners` too).

A later source wins even if it sets the option in other units: `--set log.retention.hours=1` wins over
`log.retention.ms` in the file. An unknown option or a value of the wrong type stops the start; the error has its source
and the nearest name.

While the broker runs, clients can change topic options, group options, and the broker options whose column *changes*
allows it (`kafka-configs`, the Admin API). A topic or group option that is not set has the value of the broker's
option.

These defaults differ from Kafka's: `node.id` is 1, `process.roles` is `broker,controller`, `listeners` is
`PLAINTEXT://127.0.0.1:9092`, `log.dir` is `data`, and `queued.max.request.bytes` is 536870912 (Kafka: no limit).
`listeners` and `listener.security.protocol.map` can't change while the broker runs.
"""

REFUSED_TEXT = "Options that stop the start, because ignoring them would be unsafe:\n"
IGNORED_TEXT = "Kafka options that are accepted with a warning in the log, and have no effect:\n"
CHANGED_TEXT = "Clients can change the following options while the broker runs, as with Kafka; they have no effect:\n"


def page() -> str:
    """Returns the whole page."""
    return "\n".join([INTRODUCTION, *_sections(), *_ignored()])


def _sections() -> Iterator[str]:
    yield from _section("Topic options", LogConfig, "the broker's option")
    yield from _section("Group options", GroupConfig, "the broker's option")
    yield from _section("Client metrics options", ClientMetricsConfig, None)
    yield "## Broker options\n"
    for area in BrokerConfig.__bases__:
        assert issubclass(area, Config)
        yield from _section(f"#{_first_line(area)}", area, "changes")
    yield from _section("#Only while the broker runs: replication throttles.", ThrottleOptions, "changes")


def _first_line(area: type[Config]) -> str:
    return (area.__doc__ or "").splitlines()[0]


def _section(title: str, kind: type[Config], last: str | None) -> Iterator[str]:
    level = "###" if title.startswith("#") else "##"
    yield f"{level} {title.removeprefix('#').rstrip('.')}\n"
    columns = ["option", "type", "default", "valid", "meaning", *([last] if last else [])]
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for option in sorted(kind.OPTIONS.values(), key=lambda option: option.name):
        if not option.internal:
            yield _line(option, last)
    yield ""


def _line(option: Option, last: str | None) -> str:
    ends = {"changes": option.update, "the broker's option": ", ".join(f"`{name}`" for name in option.synonyms)}
    cells = [f"`{option.name}`", option.type.name, _default(option), valid(option), option.doc]
    return f"| {' | '.join([*cells, *([ends[last]] if last else [])])} |"


def _default(option: Option) -> str:
    text = option.text(option.default)
    return f"`{text}`" if text else ("" if text is None else "(empty)")


def valid(option: Option) -> str:
    """Returns the values that an option takes, in a few words."""
    rules = option.rules
    low, high = rules.get("at_least"), rules.get("at_most")
    bounds = f"{low} to {high}" if high is not None else "" if low is None else f"at least {low}"
    check = rules["check"].valid if "check" in rules else ""
    return bounds or ", ".join(rules.get("one_of", ())) or check


def _ignored() -> Iterator[str]:
    yield "## Not supported\n"
    yield REFUSED_TEXT
    yield from (f"- `{name}`: {reason}" for name, reason in REFUSED.items())
    yield ""
    yield IGNORED_TEXT
    for reason, names in IGNORED.items():
        prefixes = [f"{prefix}*" for prefix, why in PREFIXES.items() if why == reason]
        yield f"- {reason}: {', '.join(f'`{name}`' for name in [*sorted(names.split()), *prefixes])}"
    others = {prefix: why for prefix, why in PREFIXES.items() if why not in IGNORED}
    yield from (f"- {why}: `{prefix}*`" for prefix, why in others.items())
    yield ""
    yield CHANGED_TEXT
    yield "| option | type | default | valid | changes |"
    yield f"|{'---|' * 5}"
    for option in WITHOUT_EFFECT.values():
        cells = [f"`{option.name}`", option.type.name, _default(option), valid(option), option.update]
        yield f"| {' | '.join(cells)} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
