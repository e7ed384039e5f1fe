"""The generated id of a broker (broker.id.generation.enable).

It is the id in the broker's log directories. New directories get reserved.broker.max.id plus the next number of
/brokers/seqid: ids up to reserved.broker.max.id are for configured ids. A number that a failed start has used is not
used again.

Source: KafkaServer.getBrokerIdAndOfflineDirs and generateBrokerId of Kafka 1.1.
"""

from __future__ import annotations

from broker.config import BrokerConfig
from programs.zookeeper import znodes
from protocol.config import ConfigError
from storage.disk import Disk
from storage.meta_properties import read_meta_properties


def with_broker_id(config: BrokerConfig, disk: Disk, *, check: bool = True) -> BrokerConfig:
    """Returns the configuration with the id of this broker; `check` is passed to BrokerConfig.build. Connects to
    ZooKeeper only if the directories are new. Raises ConfigError, CorruptCheckpoint, OSError."""
    if "node.id" in config.explicit:
        _check_reserved(config)
        return config
    stored = stored_id(config, disk)
    texts = {**config.explicit, "node.id": str(generated_id(config) if stored is None else stored)}
    return BrokerConfig.build(BrokerConfig.values(texts), texts, check=check)


def _check_reserved(config: BrokerConfig) -> None:
    if config.node_id > config.reserved_broker_max_id:
        raise ConfigError(
            f"node.id {config.node_id}: must not be greater than reserved.broker.max.id "
            f"{config.reserved_broker_max_id}: the ids beyond it are generated (broker.id.generation.enable)"
        )


def stored_id(config: BrokerConfig, disk: Disk) -> int | None:
    """Returns the id in the first directory that has one; None if none has. The owners of the others are checked when
    they are opened. Raises CorruptCheckpoint."""
    for directory in dict.fromkeys((config.metadata_dir, *config.data_dirs)):
        try:
            properties = read_meta_properties(disk, directory)
        except OSError:
            continue  # a directory that has failed
        if properties is not None:
            return properties.node_id
    return None


def generated_id(config: BrokerConfig) -> int:
    """Returns an id that no other broker gets. Raises ConfigError, ZookeeperUnavailable, ZookeeperRefused."""
    try:
        from programs.zookeeper.client import ZookeeperClient, ZookeeperSettings  # only new directories need it
    except ModuleNotFoundError as error:
        message = f"broker.id.generation.enable needs {error.name}: pip install 'odradek[zookeeper]'"
        raise ConfigError(message) from error
    client = ZookeeperClient(ZookeeperSettings.of(config), lambda _: None)
    client.start()
    try:
        return config.reserved_broker_max_id + client.next_number(znodes.SEQUENCE_ID)
    finally:
        client.stop()
