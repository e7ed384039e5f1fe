"""Tests the pytest plugin, in separate suites."""

from __future__ import annotations

import re

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.odradek_only
TIMEOUT_S = 120

ALONE = ("-p", "odradek.pytest_plugin", "-p", "no:cacheprovider")


def run(pytester: pytest.Pytester, *arguments: str, plugins: tuple[str, ...] = ()) -> pytest.RunResult:
    """Runs the suite with this plugin, and not with an installed one."""
    chosen = [word for plugin in plugins for word in ("-p", plugin)]
    return pytester.runpytest_subprocess(*ALONE, *chosen, *arguments, timeout=TIMEOUT_S)


@pytest.fixture(autouse=True)
def _of_this_tree(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    monkeypatch.setenv("PYTHONPATH", str(pytestconfig.rootpath))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


SHARED = """
    import pytest

    seen = []

    @pytest.mark.odradek_topic(partitions=3, configs={"cleanup.policy": "compact"})
    def test_a_topic_is_made_as_marked(odradek_broker, odradek_topic):
        assert len(odradek_broker.partitions(odradek_topic)) == 3
        seen.append((odradek_broker.bootstrap, odradek_topic))
        odradek_broker.fault(api="Metadata", error="UNKNOWN_SERVER_ERROR")
        odradek_broker.kill()

    def test_the_broker_is_the_same_and_well_and_the_topic_another(odradek_broker, odradek_topic):
        assert odradek_broker.bootstrap == seen[0][0]
        assert odradek_topic != seen[0][1]
        assert odradek_broker.control.get("/v1/faults") == {"faults": []}
        seen.append((odradek_broker.bootstrap, odradek_topic))

    def test_a_topic_is_gone_after_its_test_and_options_are_in_force(odradek_broker):
        names = [topic["topic"] for topic in odradek_broker.describe()["topics"]]
        assert seen[1][1] not in names
        odradek_broker.create_topic("by-default")
        assert len(odradek_broker.partitions("by-default")) == 4
"""


def test_fixtures_share_a_broker_that_is_well_again_before_each_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SHARED)
    pytester.makeini("[pytest]\nodradek_settings =\n    num.partitions=4\n")
    run(pytester, "--strict-markers").assert_outcomes(passed=3)


def test_the_log_is_beside_a_test_that_fails_and_no_other_tests_lines(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_first(odradek_broker):
            with open(odradek_broker.process._log, "a") as log: log.write("of the first\\n")

        def test_second(odradek_broker):
            with open(odradek_broker.process._log, "a") as log: log.write("of the second\\n")
            assert False
    """)
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    assert re.search(r"-+ log of broker \(/.*\) -+", result.stdout.str())
    assert "of the second" in result.stdout.str()
    assert "of the first" not in result.stdout.str()


@pytest.mark.examples
def test_a_broker_that_does_not_start_is_an_error_with_its_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test(odradek_broker): pass")
    pytester.makeini("[pytest]\nodradek_settings = num.partition=4\n")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*did you mean num.partitions*"])


@pytest.mark.examples
def test_each_worker_has_a_broker_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import os, pytest
        @pytest.mark.parametrize("number", range(6))
        def test(odradek_broker, odradek_topic, number):
            with open(f"{os.environ['PYTEST_XDIST_WORKER']}.seen", "a") as seen:
                seen.write(odradek_broker.bootstrap + "\\n")
    """)
    run(pytester, "-n", "2", plugins=("xdist",)).assert_outcomes(passed=6)
    addresses = [set(file.read_text().split()) for file in pytester.path.glob("gw*.seen")]
    assert [len(one) for one in addresses] == [1, 1]
    assert len(set.union(*addresses)) == 2


@pytest.mark.examples
def test_clusters_and_brokers_of_other_scopes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from odradek.testing.fixtures import broker_fixture, topic_fixture

        secured = broker_fixture(scope="module", users={"alice": "secret"})
        orders = topic_fixture("secured", partitions=2)

        def test_other(secured, orders):
            assert len(secured.partitions(orders)) == 2
            assert secured.client_config()["sasl.username"] == "alice"

        def test_cluster(odradek_cluster):
            cluster = odradek_cluster(2)
            assert odradek_cluster(2) is cluster
            assert len(cluster.brokers) == 2
    """)
    run(pytester).assert_outcomes(passed=2)


@pytest.mark.examples
def test_a_broker_that_somebody_has_started(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    from odradek.testing import Broker

    pytester.makepyfile("""
        from odradek.testing.fixtures import topic_fixture

        topic = topic_fixture("odradek_external", partitions=2)

        def test(odradek_external, topic):
            assert len(odradek_external.partitions(topic)) == 2
    """)
    missing = run(pytester)
    missing.assert_outcomes(errors=1)
    missing.stdout.fnmatch_lines(["*--odradek-external HOST:PORT*"])
    with Broker() as broker:
        control = broker.control.address
        run(pytester, f"--odradek-external={broker.bootstrap}", f"--odradek-control={control}").assert_outcomes(
            passed=1
        )
        monkeypatch.setenv("ODRADEK_EXTERNAL", broker.bootstrap)
        monkeypatch.setenv("ODRADEK_CONTROL", control)
        run(pytester).assert_outcomes(passed=1)
        assert broker.describe()["topics"] == []


HELPED = """
    from odradek.testing import BrokerError, WaitTimeout

    def test_a_topic_is_missing(odradek_broker):
        odradek_broker.wait_for_group("absent", timeout_s=0.1)

    def test_a_partition_is_missing(odradek_broker):
        odradek_broker.leader("absent")
"""


def test_a_failing_test_shows_its_own_line_and_no_frame_of_a_helper(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HELPED)
    result = run(pytester)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(['>*odradek_broker.wait_for_group("absent", timeout_s=0.1)', ">*leader(*"])
    result.stdout.no_fnmatch_line("*odradek/testing/*.py:*")
