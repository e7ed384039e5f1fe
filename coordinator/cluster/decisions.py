"""The table of the requests that a controller decides on.

A decision is a pure function: (image, request, ticket, …) → Result. It changes nothing, so it can be repeated. Its
module is imported with the first request of its kind, because a start needs few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, NamedTuple, TypeAlias

from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.controller import Asker
from coordinator.cluster.image import Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import ClusterResult
from coordinator.cluster.security.mutation_quota import Charge, Charges, unlimited
from coordinator.engine.result import Ticket
from protocol.api_key import ApiKey
from protocol.errors import KafkaError
from protocol.schema import identity
from protocol.types import Uuid

KRaftProblem: TypeAlias = Callable[[int], KafkaError | None]


class DecisionState(NamedTuple):
    """The state that a decision reads, besides the request and its sender."""

    image: Image
    sessions: BrokerSessions
    options: ClusterOptions
    configs: ConfigRules
    new_uuid: Callable[[], Uuid]
    now_ms: int
    """Milliseconds since 1970, as in records."""
    monotonic_ms: int
    """Milliseconds of the monotonic clock, as in sessions."""
    kraft_problem: KRaftProblem
    """Returns why the quorum can't be upgraded to a kraft.version."""
    charge: Charge = unlimited
    """Charges created and deleted partitions to the client's quota."""

    @property
    def controller_id(self) -> int | None:
        """The id of this controller, which no broker may have; None if this node is a broker too."""
        return None if self.options.has_broker else self.options.node_id


class DecisionRow(NamedTuple):
    """The decision on requests of one kind."""

    module: str
    """The name of the module inside coordinator.cluster."""
    function: str
    arguments: Callable[[DecisionState, Asker], tuple[object, ...]] = lambda state, asker: ()
    """Returns the arguments that follow the image, the request and its ticket."""

    def decide(self, state: DecisionState, request: object, ticket: Ticket[object], asker: Asker) -> ClusterResult:
        """Returns the decision. Raises KafkaError if all of the request is rejected."""
        function: Callable[..., ClusterResult] = getattr(self.load(), self.function)
        return function(state.image, request, ticket, *self.arguments(state, asker))

    def load(self) -> object:
        """Returns the module; imports it if needed."""
        return import_module(f"coordinator.cluster.{self.module}")


DECISIONS: Final[Mapping[ApiKey, DecisionRow]] = {
    ApiKey.CREATE_TOPICS: DecisionRow(
        "topics.create",
        "create_topics",
        lambda state, asker: (state.options, state.configs, state.new_uuid, asker.describable, state.charge),
    ),
    ApiKey.DELETE_TOPICS: DecisionRow(
        "topics.delete",
        "delete_topics",
        lambda state, asker: (state.options, asker.version, asker.deletable, asker.describable, state.charge),
    ),
    ApiKey.CREATE_PARTITIONS: DecisionRow(
        "topics.create_partitions", "create_partitions", lambda state, asker: (state.charge,)
    ),
    ApiKey.ALTER_CONFIGS: DecisionRow(
        "configs.alter", "alter_configs", lambda state, asker: (state.configs, asker.broker_id)
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: DecisionRow(
        "configs.alter", "incremental_alter_configs", lambda state, asker: (state.configs, asker.broker_id)
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: DecisionRow(
        "security.client_quotas", "alter_client_quotas", lambda state, asker: (asker.resolvable,)
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: DecisionRow("security.scram_credentials", "alter_user_scram_credentials"),
    ApiKey.CREATE_ACLS: DecisionRow("security.acl_requests", "create_acls", lambda state, asker: (state.new_uuid,)),
    ApiKey.DELETE_ACLS: DecisionRow("security.acl_requests", "delete_acls", lambda state, asker: (asker.version,)),
    ApiKey.CREATE_DELEGATION_TOKEN: DecisionRow(
        "security.delegation_tokens",
        "create_delegation_token",
        lambda state, asker: (asker.principal, state.options.tokens, state.now_ms, state.new_uuid),
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: DecisionRow(
        "security.delegation_tokens",
        "renew_delegation_token",
        lambda state, asker: (asker.principal, state.options.tokens, state.now_ms),
    ),
    ApiKey.EXPIRE_DELEGATION_TOKEN: DecisionRow(
        "security.delegation_tokens",
        "expire_delegation_token",
        lambda state, asker: (asker.principal, state.options.tokens, state.now_ms),
    ),
    ApiKey.ELECT_LEADERS: DecisionRow(
        "partitions.elect_leaders", "elect_leaders", lambda state, asker: (state.configs,)
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: DecisionRow(
        "partitions.reassignments", "alter_partition_reassignments", lambda state, asker: (state.configs,)
    ),
    ApiKey.UPDATE_FEATURES: DecisionRow(
        "brokers.update_features",
        "update_features",
        lambda state, asker: (state.options.min_insync_replicas, state.kraft_problem),
    ),
    ApiKey.UNREGISTER_BROKER: DecisionRow(
        "brokers.registration",
        "unregister_broker",
        lambda state, asker: (state.options.own_broker_id, state.configs, state.sessions),
    ),
    ApiKey.BROKER_REGISTRATION: DecisionRow(
        "brokers.registration",
        "register_in_session",
        lambda state, asker: (state.configs, state.sessions, state.controller_id, state.monotonic_ms),
    ),
    ApiKey.BROKER_HEARTBEAT: DecisionRow(
        "brokers.heartbeat",
        "heartbeat_in_session",
        lambda state, asker: (state.configs, state.sessions, state.monotonic_ms),
    ),
    ApiKey.ALTER_PARTITION: DecisionRow(
        "partitions.alter_partition", "alter_partition", lambda state, asker: (state.configs,)
    ),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: DecisionRow(
        "brokers.assign_directories", "assign_replicas_to_dirs", lambda state, asker: (state.configs,)
    ),
    ApiKey.ALLOCATE_PRODUCER_IDS: DecisionRow("allocate_producer_ids", "allocate_producer_ids"),
    ApiKey.CONTROLLER_REGISTRATION: DecisionRow("brokers.controller_registration", "register_controller"),
    ApiKey.UNREGISTER_CONTROLLER: DecisionRow(
        "brokers.controller_registration", "unregister_controller", lambda state, asker: (state.options.node_id,)
    ),
}


def decide(state: DecisionState, request: object, ticket: Ticket[object], asker: Asker) -> ClusterResult:
    """Returns the decision on a request. Raises KafkaError if all of the request is rejected."""
    row = DECISIONS[ApiKey(identity(type(request)).key)]
    if asker.quota is None:
        return row.decide(state, request, ticket, asker)
    charges = Charges(asker.quota)
    result = row.decide(state._replace(charge=charges.charge), request, ticket, asker)
    result.effect(charges.take)
    return result
