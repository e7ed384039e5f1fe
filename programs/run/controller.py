"""The dispatcher of the controller's listeners."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.config.live import LiveConfig
from broker.dispatch.dispatcher import Dispatcher
from broker.dispatch.host import Host
from broker.handlers.controller import CONTROLLER_APIS
from broker.metadata.opening import ClusterPart
from protocol.lazy import lazy

if TYPE_CHECKING:
    from broker.metadata.quorum_node import QuorumNode
    from programs.run import authorizing
else:  # with an authorizer
    authorizing = lazy("programs.run.authorizing")


def controller_dispatcher(
    live_config: LiveConfig, clock: Clock, cluster: ClusterPart, lead_quorum: Callable[[], QuorumNode]
) -> Dispatcher:
    """Returns the dispatcher for requests of brokers and other controllers, and for requests that brokers forward."""
    host = Host(live_config, clock, cluster, CONTROLLER_APIS, lead_quorum)
    if host.config.authorizer_class_name:
        authorizing.authorize(host)
    dispatcher = Dispatcher(host)
    host.answer_forwarded = dispatcher.answer
    return dispatcher
