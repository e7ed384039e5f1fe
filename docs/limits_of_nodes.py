"""The limits of what brokers and controllers register: rows of docs/limits.md."""

from __future__ import annotations

from docs.limit import Limit

REGISTRATION = "tests/coordinator/cluster/test_registration.py::"
BOUNDS = "coordinator.cluster.brokers.bounds."
MORE = f"{REGISTRATION}test_no_node_registers_more_than_a_machine_has"
REFUSED = "INVALID_REGISTRATION, and no record is written"

NODES = (
    Limit(
        "listeners, features, log directories, names, hosts and rack of a node",
        "the constants",
        (
            f"{BOUNDS}MAX_LISTENERS",
            f"{BOUNDS}MAX_FEATURES",
            f"{BOUNDS}MAX_DIRECTORIES",
            f"{BOUNDS}MAX_TEXT",
        ),
        REFUSED,
        (
            MORE,
            f"{REGISTRATION}test_no_controller_registers_more_either",
            f"{REGISTRATION}test_a_broker_may_have_as_much_as_the_bounds_allow",
        ),
    ),
    Limit(
        "registered brokers, and controllers",
        "the constant, for each kind",
        (f"{BOUNDS}MAX_NODES",),
        f"{REFUSED}; a broker that is registered may register again",
        (f"{REGISTRATION}test_no_more_brokers_register_than_a_cluster_has",),
    ),
    Limit(
        "id of a broker that registers",
        "an int32 from 0 on, but not the id of the active controller, unless that is a broker too",
        (),
        REFUSED,
        (MORE,),
    ),
    Limit(
        "cordoned log directories in a heartbeat",
        "the broker's registered directories",
        (),
        "other directories are ignored",
        ("tests/coordinator/cluster/test_broker_heartbeat.py::test_only_directories_that_the_broker_has_are_cordoned",),
    ),
)
