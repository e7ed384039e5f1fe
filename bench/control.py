"""The cost of faults on demand: the same broker with and without the control server of tests, or the broker of today
and that of an earlier commit, in one interleaved run. `make bench-control`.

    python -m bench.control [--before REVISION] [--loads LOAD …] [--rounds N] [--results FOLDER]

With the control server two more callables are on the way of each request: that is the price of the profile `test`.
Nobody else has them, and `--before` shows that the path without them is what it was before they came.
"""

from __future__ import annotations

import sys
from typing import Final

from bench.metrics import Comparison, compare, parser_of
from bench.peers.brokers import ControlledOdradek, EarlierOdradek, Odradek

CONTROL: Final = Comparison("bench.control", "the control server", Odradek, ControlledOdradek, "control")


def compared_with(revision: str | None) -> Comparison:
    """Returns what is compared: with the broker of a revision of this repository, where one is given."""
    if revision is None:
        return CONTROL
    EarlierOdradek.revision = revision
    return CONTROL._replace(what=f"all since {revision}", without=EarlierOdradek, having=Odradek, folder="before")


if __name__ == "__main__":
    parser = parser_of(CONTROL)
    parser.add_argument("--before", metavar="REVISION", help="hold today's broker against that of a commit")
    options = parser.parse_args()
    sys.exit(compare(compared_with(options.before), options))
