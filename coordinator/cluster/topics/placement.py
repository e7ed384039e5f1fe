"""Places the replicas of new partitions, and validates manual assignments.

Source: Kafka's StripedReplicaPlacer and ReplicationControlManager.validateManualPartitionAssignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from coordinator.cluster.brokers.info import BrokerRegistration
from coordinator.cluster.image import Image
from coordinator.cluster.topics.striping import Striping, UsableBroker
from coordinator.cluster.topics.topic import PartitionRegistration
from protocol.errors import ErrorCode, KafkaError
from protocol.types import NO_UUID, Uuid


class Placer:
    """Places the partitions of one request over brokers and racks, and on each broker in the directory with the fewest
    replicas.
    """

    def __init__(self, image: Image) -> None:
        self._image = image
        self._load: Counter[Uuid] = Counter(image.partitions_in)

    def place(self, count: int, replication_factor: int, seed: int) -> list[PartitionRegistration]:
        """Returns new partitions in order. The seed selects the first broker; each topic has another seed, so that the
        leaders of small topics are spread too.

        Raises KafkaError(INVALID_REPLICATION_FACTOR) if there are not enough brokers.
        """
        striping = Striping(self._usable(), seed)
        if not striping.unfenced_count:
            why = "All brokers are currently fenced, or have all their log directories cordoned."
            raise _cannot(replication_factor, why)
        if replication_factor > striping.broker_count:
            raise _cannot(
                replication_factor,
                f"The target replication factor of {replication_factor} cannot be reached because only "
                f"{striping.broker_count} broker(s) are registered or some brokers have all their log directories "
                "cordoned.",
            )
        return [self.build(striping.place(replication_factor)) for _ in range(count)]

    def _usable(self) -> list[UsableBroker]:
        """Returns the brokers that are not stopping, and have a directory for more replicas."""
        return [
            UsableBroker(broker.broker_id, broker.rack, broker.fenced)
            for broker in self._image.brokers.values()
            if (broker.fenced or not broker.in_controlled_shutdown) and not _is_cordoned(broker)
        ]

    def build(self, replicas: tuple[int, ...]) -> PartitionRegistration:
        """Returns a new partition on these brokers: the active brokers are in sync, and the first of them leads."""
        isr = tuple(broker_id for broker_id in replicas if self._image.is_active(broker_id))
        return PartitionRegistration(
            replicas=replicas, isr=isr, leader=isr[0], directories=tuple(map(self.directory, replicas))
        )

    def directory(self, broker_id: int) -> Uuid:
        """Returns the broker's directory with the fewest replicas, including those placed by this request; unassigned
        if the broker has registered none.
        """
        broker = self._image.brokers[broker_id]
        cordoned = broker.cordoned_log_dirs or ()
        usable = [directory for directory in broker.log_dirs if directory not in cordoned] or [*broker.log_dirs]
        if not usable:
            return NO_UUID
        chosen = min(usable, key=lambda directory: self._load[directory])
        self._load[chosen] += 1
        return chosen


def _is_cordoned(broker: BrokerRegistration) -> bool:
    return bool(broker.log_dirs) and set(broker.log_dirs) <= set(broker.cordoned_log_dirs or ())


def _cannot(replication_factor: int, why: str) -> KafkaError:
    message = f"Unable to replicate the partition {replication_factor} time(s): {why}"
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def check_assignment(image: Image, replicas: Sequence[int], replication_factor: int | None) -> None:
    """Raises KafkaError(INVALID_REPLICA_ASSIGNMENT) for an impossible assignment."""
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    for position, broker_id in enumerate(sorted(replicas)):
        if broker_id not in image.brokers:
            raise _invalid(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if position and sorted(replicas)[position - 1] == broker_id:
            raise _invalid(f"The manual partition assignment includes the broker {broker_id} more than once.")
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def check_some_active(image: Image, replicas: Sequence[int], index: int) -> None:
    """Raises KafkaError(INVALID_REPLICA_ASSIGNMENT) if no broker of the assignment can lead."""
    if not any(map(image.is_active, replicas)):
        raise _invalid(
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
