"""The twenty acceptance tests of replication, by number: faults of other systems, planted in the real code.

Each removes the code that prevents the fault; if two parts prevent it, both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

import pytest

from tests.simulation.cluster import planted_in_followers as followers
from tests.simulation.cluster import planted_others as others
from tests.simulation.cluster.courses import (
    Course,
    by_chance,
    leaders_are_alone,
    leaders_are_zombies,
    the_eligible_one_loses_its_power,
    two_fast_failovers,
)
from tests.simulation.cluster.courses_of_machines import (
    DIRECTORIES,
    a_follower_comes_after_the_start,
    answers_are_damaged,
    directories_change,
    followers_bounce,
    former_processes_are_heard,
    leaders_are_replaced,
    leaders_step_down,
    replicas_move,
    the_metadata_change_all_the_time,
    topics_are_made_anew,
)
from tests.simulation.cluster.surroundings import NO_OPTIONS
from tests.simulation.cluster.world import REST_S, run_cluster

TWO_DIRECTORIES: Mapping[str, str] = MappingProxyType({"log.dirs": ",".join(DIRECTORIES)})

SOON_S = 10
"""A shorter time to wait for a cluster with a fault."""


class World(Protocol):
    """Runs a seed, and returns the violated invariants."""

    def __call__(self, seed: int, /) -> Collection[object]: ...


class ClusterCourse(NamedTuple):
    """The world `cluster`, with a course towards the situation in which a fault does harm."""

    course: Course
    options: Mapping[str, str] = NO_OPTIONS
    rest_s: float = SOON_S

    def __call__(self, seed: int) -> Collection[object]:
        return run_cluster(seed, self.course, self.options, self.rest_s).breaches

    def without_fault(self, seed: int) -> Collection[object]:
        """Returns the same course with the full time to come to rest."""
        return self._replace(rest_s=REST_S)(seed)


class Planted(NamedTuple):
    """An acceptance test: its number, its fault, a world that detects the fault, and a seed at which it did. If the
    product has changed since, up to this many other seeds may pass first."""

    number: int
    plant: Callable[[pytest.MonkeyPatch], None]
    world: World
    seed: int
    tries: int = 20


PLANTED = (
    Planted(1, followers.followers_cut_at_their_high_watermark, ClusterCourse(by_chance), 13, 40),
    Planted(2, followers.followers_cut_at_the_leader_s_word_alone, ClusterCourse(two_fast_failovers), 3),
    Planted(3, followers.an_epoch_begins_with_its_first_record, ClusterCourse(by_chance), 1),
    Planted(4, others.nobody_is_fenced_by_its_epoch, ClusterCourse(leaders_are_replaced), 1),
    Planted(5, followers.the_high_watermark_precedes_the_truncation, ClusterCourse(leaders_are_alone), 0),
    Planted(6, others.a_diverging_fetch_is_progress, ClusterCourse(leaders_step_down), 7),
    Planted(7, followers.an_empty_answer_forgets_the_last_epoch, ClusterCourse(leaders_are_alone), 0, 40),
    Planted(8, others.the_former_fetcher_goes_on, ClusterCourse(leaders_are_zombies), 1),
    Planted(9, others.damaged_batches_are_taken, ClusterCourse(answers_are_damaged), 0),
    Planted(10, others.a_log_begins_anew_below_its_high_watermark, ClusterCourse(a_follower_comes_after_the_start), 4),
    Planted(11, followers.a_new_leader_tells_its_end_at_once, ClusterCourse(by_chance), 4),
    Planted(13, others.former_brokers_are_in_sync, ClusterCourse(followers_bounce), 1),
    Planted(14, others.former_brokers_are_heard, ClusterCourse(former_processes_are_heard), 24),
    Planted(15, others.who_may_not_join_is_waited_for, ClusterCourse(by_chance), 3),
    Planted(16, followers.every_stop_counts_as_clean, ClusterCourse(the_eligible_one_loses_its_power), 0),
    Planted(16, followers.a_fenced_replica_is_elected, ClusterCourse(by_chance), 1),
    Planted(17, others.a_former_topic_lives_on, ClusterCourse(topics_are_made_anew), 1),
    Planted(18, others.who_was_reassigned_goes_on, ClusterCourse(replicas_move), 0),
    Planted(19, others.a_moved_log_has_no_epochs, ClusterCourse(directories_change, TWO_DIRECTORIES), 0),
    Planted(20, others.who_has_not_all_stays_fenced, ClusterCourse(the_metadata_change_all_the_time), 0),
)
