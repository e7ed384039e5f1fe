"""The cost of the control server: compares the same broker with and without it, or the current broker and an earlier
commit's, in one interleaved run. `make bench-control`.

    python -m bench.control [--before REVISION] [--loads LOAD …] [--rounds N] [--results FOLDER]

With the control server, each request passes two more callables: that is the cost of the profile `test`. Other profiles
don't have them; `--before` shows that they don't cost more than before the control server existed.
"""

from __future__ import annotations

import sys
from typing import Final

from bench.metrics import Comparison, compare, parser_of
from bench.peers.brokers import ControlledOdradek, EarlierOdradek, Odradek

CONTROL: Final = Comparison("bench.control", "the control server", Odradek, ControlledOdradek, "control")


def compared_with(revision: str | None) -> Comparison:
    """Returns the comparison: with an earlier revision of this repository if it is given, otherwise with and without
    the control server.
    """
    if revision is None:
        return CONTROL
    EarlierOdradek.revision = revision
    return CONTROL._replace(what=f"all since {revision}", without=EarlierOdradek, having=Odradek, folder="before")


if __name__ == "__main__":
    parser = parser_of(CONTROL)
    parser.add_argument("--before", metavar="REVISION", help="compare the current broker with an earlier commit's")
    options = parser.parse_args()
    sys.exit(compare(compared_with(options.before), options))
