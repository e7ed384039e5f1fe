"""Tests the measured parts of docs/benchmarks.md: they are written from result files, and the rest stays unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.clusters.rows import ROWS
from bench.goals import BY_LOAD, verdicts
from bench.loads import GOALS, LOADS, LONG, pick
from bench.page import ELSEWHERE, PAGE, PARTS, larger, written
from bench.results import NO_LOAD, RESULTS, PeerResult, result_of, save, saved
from bench.saturation import Saturation
from bench.security_page import TLS, tls
from bench.tried import TRIED

TEXT = "before\n" + "between\n".join(f"<!-- measured: {name} -->\nstale\n<!-- end -->\n" for name in PARTS) + "after\n"


def rounds(*costs: float) -> list[Mapping[str, float]]:
    return [{"cpu_s_per_gb": cost, "mb_per_s": 100.0} for cost in costs]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    peers = {
        "odradek": PeerResult("Odradek", rounds(0.36, 0.34, 0.35), warm_up=tuple(rounds(0.35, 0.35, 0.35))),
        "kafka": PeerResult("Apache Kafka", rounds(0.4, 0.41, 0.39), warm_up=tuple(rounds(3.7, 0.4))),
    }
    save(tmp_path, result_of(LOADS["consume"], peers, 61.4))
    rows = [Saturation("produce", 1, 300.0, 0.98, 0.5), Saturation("consume", 1, 2_000.0, 0.99, 2.0)]
    (tmp_path / NO_LOAD).write_text(json.dumps({"machine": "m", "rows": [row._asdict() for row in rows]}))
    return tmp_path


def test_a_part_is_written_and_the_rest_stays(results: Path) -> None:
    page = written(TEXT, results)
    assert page.startswith("before\n")
    assert "between" in page
    assert page.endswith("after\n")
    assert "stale" not in page
    assert "| consume 1 KB | CPU per GB, s/GB |" in page
    assert "3.700 → 0.400 | 0.350 | 0.87 | ≤ 0.55 | **missed** |" in page
    assert "| consume 1 KB | odradek 3, kafka 2 (not stable) | 3 | 61 s |" in page
    assert "- consume 1 KB, CPU per GB 0.87 of Apache Kafka" in page
    assert written(page, results) == page
    (results / "profile-produce.svg").write_text("")
    assert "- [profile-produce](" in written(page, results)


def test_tls_is_shown_beside_the_same_without_it(results: Path) -> None:
    costs = {"odradek": 0.4, "odradek-tls": 1.5, "kafka": 0.6, "kafka-tls": 3.0}
    peers = {name: PeerResult(name, rounds(cost)) for name, cost in costs.items()}
    save(results / "tls", result_of(LOADS["consume"], peers, 61.4))
    save(results / "tls", result_of(LOADS["produce"], {"kafka-tls": peers["kafka-tls"]}, 61.4))
    page = written(TEXT, results)
    assert "| consume 1 KB | CPU per GB, s/GB | 0.400 | 1.500 | 0.600 | 3.000 | 3.75 | 0.50 |" in page
    assert "| produce 1 KB, acks=1 | CPU per GB, s/GB | – | – | – | 3.000 | – | – |" in page


def test_what_was_tried_is_below_the_table_whose_goal_is_missed(results: Path) -> None:
    costs = {"odradek": 4.4, "odradek-tls": 9.0, "kafka": 1.0, "kafka-tls": 10.0}
    peers = {name: PeerResult(name, rounds(cost)) for name, cost in costs.items()}
    save(results / "tls", result_of(LOADS["produce"], peers, 61.4))
    part = tls(results)
    assert part.endswith(f"- produce 1 KB, acks=1, CPU per GB 0.90 of kafka-tls: {TRIED['produce', 'kafka-tls']}.\n")
    assert TRIED["produce", "kafka"] not in part


def test_an_authorizer_is_shown_beside_the_same_without_it(results: Path) -> None:
    load = LOADS["produce-unbatched"]
    samples = {"odradek": 2.0, "odradek-acls": 2.1}
    peers = {name: PeerResult(name, [{"cpu_s_per_million": cost}]) for name, cost in samples.items()}
    save(results / "acls", result_of(load, peers, 61.4))
    row = "| produce 1 KB, unbatched | CPU per million, s/M | 2.000 | 2.100 | – | – | 1.05 | – |"
    assert row in written(TEXT, results)


def test_the_ratios_of_another_processor_are_beside_the_others(results: Path) -> None:
    peers = {"odradek": PeerResult("Odradek", rounds(0.5), warm_up=tuple(rounds(0.6, 0.5)))}
    peers["kafka"] = PeerResult("Apache Kafka", rounds(1.0))
    save(results / "xeon", result_of(LOADS["consume"], peers, 61.4))
    save(results / "xeon", result_of(LOADS["produce"], peers, 61.4))
    secured = {"odradek-tls": PeerResult("Odradek", rounds(3.0)), "kafka-tls": PeerResult("Apache Kafka", rounds(4.0))}
    for folder in (results, results / "xeon"):
        save(folder / "tls", result_of(LOADS["produce"], secured, 61.4))
    page = written(TEXT, results)
    assert "| consume 1 KB | CPU per GB, s/GB | 0.87 | 0.50 | ≤ 0.55 | reached |" in page
    assert "| produce 1 KB, acks=1, TLS | CPU per GB, s/GB | 0.75 | 0.75 | ≤ 0.6 | **missed** |" in page
    assert "| produce 1 KB, acks=1 | CPU per GB, s/GB | 0.50" not in page
    assert "| consume 1 KB | odradek 2 (not stable) | 1 | 61 s |" in page


def test_what_was_tried_for_goals_that_only_another_processor_misses_is_below_its_table(results: Path) -> None:
    for folder, ours in ((results, 0.3), (results / "xeon", 0.9)):
        peers = {"odradek": PeerResult("Odradek", rounds(ours)), "kafka": PeerResult("Apache Kafka", rounds(1.0))}
        save(folder, result_of(LOADS["produce"], peers, 61.4))
        slower: list[Mapping[str, float]] = [{"cpu_s_per_gb": 0.9, "mb_per_s": 200 * (1 - ours)}]
        peers = {"odradek": PeerResult("Odradek", slower), "kafka": PeerResult("Apache Kafka", rounds(1.0))}
        save(folder, result_of(LOADS["consume"], peers, 61.4))
    _, _, page = written(TEXT, results).partition("ratio there")
    assert f"- produce 1 KB, acks=1, CPU per GB 0.90 of Apache Kafka: {TRIED['produce', 'kafka']}.\n" in page
    assert "- consume 1 KB, throughput 0.20 of Apache Kafka: as above.\n" in page
    assert "- consume 1 KB, CPU" not in page


def test_the_page_has_all_parts() -> None:
    assert written(PAGE.read_text(), Path("/nowhere"))


def test_a_page_without_its_parts_is_refused(results: Path) -> None:
    with pytest.raises(ValueError, match="measured: profiles"):
        written("nothing", results)


def test_sixteen_cores_are_more_than_ten_gigabits() -> None:
    text = larger([Saturation("produce", 1, 300.0, 0.98, 0.5), Saturation("consume", 1, 2_000.0, 0.99, 2.0)])
    assert "1 ÷ 0.50 + 2 ÷ 2.00 = 3.00 s of a core" in text
    assert "0.62 GB/s of it can be produced while it is read 2 times; that takes 1.9 cores" in text
    assert "the network would be full first" in text


def test_every_load_of_the_goals_has_goals_of_its_own(results: Path) -> None:
    assert [load.name for load in pick(["goals"])] == list(GOALS)
    (consume,) = saved(results)
    assert list(verdicts("consume", consume.figures, consume.peers))


def test_what_was_tried_is_of_loads_that_have_such_a_goal() -> None:
    of_clusters = {(row, goal.other) for row in ROWS for goal in BY_LOAD[row]}
    others = {(load, goal.other) for load in (*LOADS, *LONG) for goal in BY_LOAD.get(load, ())}
    assert TRIED.keys() <= of_clusters | others


def test_each_goal_that_the_published_results_miss_has_a_text_of_what_was_tried() -> None:
    machines = (RESULTS.parent, RESULTS.parent / ELSEWHERE)
    results = [result for folder in machines for part in (folder, folder / TLS) for result in saved(part)]
    assert results
    missing = {
        (result.load, verdict.goal.other)
        for result in results
        for verdict in verdicts(result.load, result.figures, result.peers)
        if not verdict.reached
    }
    assert missing <= TRIED.keys()
