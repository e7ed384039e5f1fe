"""Tests `odradek cluster controller`: a quorum grows from one controller to three under load, a controller's disk is
replaced, and a controller is removed for good."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.administration import Administration
from tests.interop.load import Load
from tests.interop.own_quorum import OdradekNode, OwnQuorum
from tests.interop.processes import free_port
from tests.interop.quorum import CONTROLLER_ID
from tests.interop.several_controllers import leader_of
from tests.interop.voters import SOON_S, Operator
from tests.waiting import eventually

TOPIC = "under-load"
SECOND, THIRD = 101, 102


def a_controller(quorum: OwnQuorum, node_id: int) -> OdradekNode:
    """Returns a controller that isn't a voter yet."""
    own = {"process.roles": "controller", "node.id": str(node_id), "listeners": f"CONTROLLER://127.0.0.1:{free_port()}"}
    return OdradekNode(quorum.folder / f"controller-{node_id}", {**quorum.joining, **own}, "--no-initial-controllers")


@pytest.mark.timeout(600)
def test_one_controller_becomes_three_and_one_is_replaced_and_removed(tmp_path: Path) -> None:
    quorum = OwnQuorum(tmp_path, broker__session__timeout__ms="9000")
    broker, second, third = quorum.odradek(1), a_controller(quorum, SECOND), a_controller(quorum, THIRD)
    quorum.controller.start()
    broker.start()
    operator = Operator(broker.bootstrap)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(SOON_S)
    load, administration = Load(broker.bootstrap, TOPIC, 1), Administration(broker.bootstrap, seed=1)
    administration.start()

    # From one to three.
    assert operator.ask("cluster", "controller", "add", str(SECOND))[0] == 1
    assert "is the only voter" in operator.ask("cluster", "controller", "remove", str(CONTROLLER_ID), "--yes")[1]
    operator.add(second, SECOND)
    assert ("controllers", "odradek cluster controller add ID") in operator.findings(), "two voters are as few as one"
    operator.add(third, THIRD)
    assert operator.findings() == set()
    three = operator.directories()
    assert set(three) == {CONTROLLER_ID, SECOND, THIRD}
    status, plan = operator.ask("cluster", "controller", "remove", str(THIRD))
    assert status == 0
    assert "nothing has changed" in plan
    assert operator.directories() == three

    # The disk of the second is lost.
    second.kill9()
    shutil.rmtree(second.data)
    second.start()
    remedy = f"odradek cluster controller remove {SECOND} --directory {three[SECOND]} --yes"
    eventually(lambda: (f"controller {SECOND}", remedy) in operator.findings(), True, within_s=SOON_S)
    assert "first `odradek cluster controller remove" in operator.ask("cluster", "controller", "add", str(SECOND))[1]
    operator.change("remove", str(SECOND), "--directory", three[SECOND])
    operator.change_observer(SECOND)
    assert operator.directories().keys() == three.keys()
    assert operator.directories()[SECOND] != three[SECOND]
    eventually(operator.findings, set(), within_s=SOON_S)

    # The first goes for good, while it leads or not.
    quorum.controller.kill9()
    eventually(lambda: leader_of(broker.bootstrap) in (SECOND, THIRD), True, within_s=SOON_S)
    operator.change("remove", str(CONTROLLER_ID))
    assert set(operator.directories()) == {SECOND, THIRD}
    operator.change("unregister", str(CONTROLLER_ID))
    assert (
        "CONTROLLER_ID_NOT_REGISTERED"
        in operator.ask("cluster", "controller", "unregister", str(CONTROLLER_ID), "--yes")[1]
    )

    administration.finish()
    load.finish()
    assert load.check()
    assert not administration.faults
    eventually(lambda: administration.found(broker.bootstrap), administration.expected, within_s=SOON_S)
