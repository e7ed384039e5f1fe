"""Tests flame graphs: stacks of perf become boxes, each as wide as its samples and above its caller."""

from __future__ import annotations

from bench import flame
from bench.flame import Frame

SCRIPT = """\
odradek 1
\tffffffff813a2313 ext4_write ([kernel.kallsyms])
\t          2965c1 pwrite (/lib/libc.so.6)
\t          11672f CPyDef_append (/x/core.so)
\tffffffffffffffff [unknown] ([unknown])

odradek 1
\t          11672f CPyDef_append (/x/core.so)

odradek 1
\t          1383f8 uv__io_poll (/x/loop.so)
"""


def test_frames_are_named_from_the_outermost_on_and_the_kernels_are_marked() -> None:
    assert list(flame.stacks(SCRIPT.splitlines())) == [
        ("CPyDef_append", "pwrite", "ext4_write [k]"),
        ("CPyDef_append",),
        ("uv__io_poll",),
    ]


def test_a_box_is_as_wide_as_all_that_it_called_and_what_it_did_itself() -> None:
    counts = {("a",): 2, ("a", "b"): 3, ("a", "b", "c"): 1, ("d",): 4}
    assert flame.boxes(counts) == [Frame("a", 0, 0, 6), Frame("b", 1, 2, 4), Frame("c", 2, 5, 1), Frame("d", 0, 6, 4)]


def test_a_drawing_has_every_box_with_its_share() -> None:
    drawn = flame.svg("1 < 2", flame.stacks(SCRIPT.splitlines()))
    assert "1 &lt; 2: 3 samples" in drawn
    assert "<title>CPyDef_append: 66.7%</title>" in drawn
    assert drawn.count("<rect") == 4


def test_folded_stacks_count_as_often_as_they_were_seen() -> None:
    assert list(flame.folded(["main (a b.py:1);send 2", "main (a b.py:1) 1"])) == [
        ("main (a b.py:1)", "send"),
        ("main (a b.py:1)", "send"),
        ("main (a b.py:1)",),
    ]


def test_of_too_many_boxes_the_widest_are_drawn() -> None:
    samples = [("wide",)] * 50 + [(f"frame {number} {'x' * 500}",) for number in range(2 * flame.MOST_BOXES)]
    drawn = flame.svg("many", samples)
    assert drawn.count("<rect") <= flame.MOST_BOXES
    assert "<title>wide: " in drawn
    assert len(drawn) < 300_000


def test_no_samples_are_an_empty_drawing() -> None:
    assert "<rect" not in flame.svg("nothing", [])
