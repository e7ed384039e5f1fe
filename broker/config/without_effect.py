"""The options without effect that clients may change dynamically, as in Apache Kafka's DynamicBrokerConfig: their
values are checked, stored and described. `unsupported.py` gives the reasons why they have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from protocol.config import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PER_BROKER,
    SHORT,
    STRING,
    Option,
    OptionRules,
    Type,
)
from storage.config import MAX_LONG

POSITIVE: Final = OptionRules(at_least=1, update=CLUSTER_WIDE)
OF_ALL_BROKERS: Final = OptionRules(update=CLUSTER_WIDE)
OF_A_BROKER: Final = OptionRules(update=PER_BROKER)

ROWS: Final[tuple[tuple[str, Type[object], object, OptionRules, str], ...]] = (
    ("background.threads", INT, 10, POSITIVE, "high"),
    ("config.providers", LIST, (), OF_ALL_BROKERS, "low"),
    ("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, OF_ALL_BROKERS, "medium"),
    ("num.io.threads", INT, 8, POSITIVE, "high"),
    ("num.network.threads", INT, 3, POSITIVE, "high"),
    ("remote.fetch.max.wait.ms", INT, 500, POSITIVE, "medium"),
    ("remote.list.offsets.request.timeout.ms", LONG, 30_000, POSITIVE, "medium"),
    ("remote.log.index.file.cache.total.size.bytes", LONG, 1 << 30, POSITIVE, "low"),
    ("remote.log.manager.copier.thread.pool.size", INT, 10, POSITIVE, "medium"),
    ("remote.log.manager.copy.max.bytes.per.second", LONG, MAX_LONG, POSITIVE, "medium"),
    ("remote.log.manager.expiration.thread.pool.size", INT, 10, POSITIVE, "medium"),
    ("remote.log.manager.fetch.max.bytes.per.second", LONG, MAX_LONG, POSITIVE, "medium"),
    ("remote.log.manager.follower.thread.pool.size", INT, 2, POSITIVE, "medium"),
    ("remote.log.reader.threads", INT, 10, POSITIVE, "medium"),
    ("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", OF_A_BROKER, "medium"),
    ("sasl.kerberos.min.time.before.relogin", LONG, 60_000, OF_A_BROKER, "medium"),
    ("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, OF_A_BROKER, "medium"),
    ("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, OF_A_BROKER, "medium"),
    ("sasl.login.refresh.buffer.seconds", SHORT, 300, OF_A_BROKER, "medium"),
    ("sasl.login.refresh.min.period.seconds", SHORT, 60, OF_A_BROKER, "medium"),
    ("sasl.login.refresh.window.factor", DOUBLE, 0.8, OF_A_BROKER, "medium"),
    ("sasl.login.refresh.window.jitter", DOUBLE, 0.05, OF_A_BROKER, "medium"),
    ("ssl.keymanager.algorithm", STRING, "SunX509", OF_A_BROKER, "medium"),
    ("ssl.protocol", STRING, "TLSv1.3", OF_A_BROKER, "medium"),
    ("ssl.provider", STRING, None, OF_A_BROKER, "medium"),
    ("ssl.secure.random.implementation", STRING, None, OF_A_BROKER, "low"),
    ("ssl.trustmanager.algorithm", STRING, "PKIX", OF_A_BROKER, "medium"),
)


def _options() -> Iterator[Option]:
    for name, kind, default, rules, importance in ROWS:
        yield Option(kind, default, "Has no effect.", OptionRules(**rules, importance=importance), name)  # type: ignore[typeddict-item]


WITHOUT_EFFECT: Final = {option.name: option for option in _options()}
