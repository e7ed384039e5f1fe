"""The options of Apache Kafka that this broker does not support, so that it can start with a server.properties of
Kafka's.

Options in `IGNORED` are accepted with a warning. Options in `REFUSED` stop the start, because ignoring them would be
unsafe. Any other unknown name is an error.
"""

from __future__ import annotations

from typing import Final

from broker.config.listener_options import LISTENER_PREFIX

REFUSED: Final = {
    "sasl.client.callback.handler.class": "Java classes are not loaded",
    "ssl.engine.factory.class": "Java classes are not loaded",
    "config.providers": "config providers are not supported, and the value would be used literally",
}

PREFIXES: Final = {
    "rlmm.config.": "tiered storage is not built",
    "rsm.config.": "tiered storage is not built",
    "confluent.": "this option is not Apache Kafka's",
}

IGNORED: Final = {
    "Kafka 4 removed it": """
        advertised.host.name advertised.port auto.include.jmx.reporter
        control.plane.listener.name delegation.token.master.key eligible.leader.replicas.enable
        group.coordinator.new.enable group.share.enable group.share.max.groups host.name
        inter.broker.protocol.version log.message.downconversion.enable log.message.format.version
        log.message.timestamp.difference.max.ms offsets.commit.required.acks password.encoder.cipher.algorithm
        password.encoder.iterations password.encoder.key.length password.encoder.keyfactory.algorithm
        password.encoder.old.secret password.encoder.secret port quota.consumer.default quota.producer.default
        sasl.server.authn.async.enable unstable.metadata.versions.enable
        zookeeper.clientCnxnSocket zookeeper.max.in.flight.requests
        zookeeper.metadata.migration.enable zookeeper.metadata.migration.min.batch.size
        zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable zookeeper.ssl.crl.enable
        zookeeper.ssl.enabled.protocols zookeeper.ssl.endpoint.identification.algorithm
        zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password zookeeper.ssl.keystore.type
        zookeeper.ssl.ocsp.enable zookeeper.ssl.protocol zookeeper.ssl.truststore.location
        zookeeper.ssl.truststore.password zookeeper.ssl.truststore.type zookeeper.sync.time.ms
        """,
    "this broker authenticates to other nodes by passwords only, and OpenSSL has no such setting": """
        early.start.listeners sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
        sasl.login.callback.handler.class sasl.login.class
        sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
        sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
        sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.assertion.algorithm
        sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
        sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
        sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
        sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
        sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url
        security.providers ssl.keymanager.algorithm ssl.protocol ssl.provider ssl.secure.random.implementation
        ssl.trustmanager.algorithm
        """,
    "tiered storage is not built": """
        follower.fetch.last.tiered.offset.enable remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
        remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
        remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
        remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
        remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
        remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
        remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
        remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
        remote.log.storage.manager.class.name remote.log.storage.manager.class.path
        remote.log.storage.manager.impl.prefix remote.log.storage.system.enable
        """,
    "the metadata log is flushed at once, and records that arrive meanwhile share the next flush": """
        controller.quorum.append.linger.ms
        """,
    "the broker has its own limits for controlled shutdowns and for connections to other nodes": """
        controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms
        controller.socket.timeout.ms replica.socket.receive.buffer.bytes
        socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
        """,
    "a single event loop does the work, and a delayed request is completed by its event, without a purge": """
        background.threads delete.records.purgatory.purge.interval.requests fetch.purgatory.purge.interval.requests
        group.coordinator.background.threads group.coordinator.threads num.io.threads num.network.threads
        num.replica.alter.log.dirs.threads producer.purgatory.purge.interval.requests
        queued.max.requests server.max.startup.time.ms share.coordinator.threads
        share.fetch.purgatory.purge.interval.requests
        """,
    "Java classes are not loaded": """
        alter.config.policy.class.name client.quota.callback.class create.topic.policy.class.name
        group.share.dlq.manager.class.name group.streams.topology.description.plugin.class
        kafka.metrics.polling.interval.secs kafka.metrics.reporters metric.reporters
        metrics.num.samples metrics.recording.level metrics.sample.window.ms
        """,
    "the broker has no feature that uses it": """
        controller.performance.always.log.threshold.ms controller.performance.sample.period.ms cordoned.log.dirs
        leader.imbalance.per.broker.percentage
        internal.metadata.delete.delay.millis internal.metadata.max.batch.size.in.bytes unstable.api.versions.enable
        unstable.feature.versions.enable
        """,
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LISTENER_ONLY: Final = _words(
    """
    ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
    ssl.keystore.type ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
    ssl.truststore.type
    """
)
"""Options that clients can change only for single listeners, as in Kafka (SslConfigs.RECONFIGURABLE_CONFIGS)."""

NOT_CONFIGURATION: Final = _words(
    """
    KAFKA_CLUSTER_ID KAFKA_GC_LOG_OPTS KAFKA_HEAP_OPTS KAFKA_HOME KAFKA_JMX_HOSTNAME KAFKA_JMX_OPTS KAFKA_JMX_PORT
    KAFKA_JVM_PERFORMANCE_OPTS KAFKA_LOG4J_LOGGERS KAFKA_LOG4J_OPTS KAFKA_LOG4J_ROOT_LOGLEVEL KAFKA_OPTS KAFKA_PORT
    KAFKA_SERVICE_HOST KAFKA_SERVICE_PORT KAFKA_TOOLS_LOG4J_LOGLEVEL KAFKA_VERSION
    """
)
"""Environment variables of Apache's image, and the variables that Kubernetes sets for a service called kafka."""

NOT_CONFIGURATION_PREFIXES: Final = ("KAFKA_PORT_", "KAFKA_SERVICE_PORT_")


def why_refused(name: str) -> str | None:
    """Returns why a Kafka option stops the start, for the broker or for one listener; None for any other name."""
    if name.startswith(LISTENER_PREFIX):
        return next((reason for option, reason in REFUSED.items() if name.endswith(f".{option}")), None)
    return REFUSED.get(name)


def why_ignored(name: str) -> str | None:
    """Returns why a Kafka option has no effect here, for the broker or for one listener; None for an unknown name."""
    if name.startswith(LISTENER_PREFIX):
        name = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
    for reason, names in IGNORED.items():
        if name in names.split():
            return reason
    return next((reason for prefix, reason in PREFIXES.items() if name.startswith(prefix)), None)
