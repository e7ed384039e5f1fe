"""Differences between compiled code and Python. test_differences.py calls each function both compiled and
interpreted."""

from __future__ import annotations

import threading
import weakref
from enum import IntEnum
from typing import Any, Final, NamedTuple

from mypy_extensions import i64

LIMIT: Final = 1
"""The test sets it to 2."""


class First(Exception):
    pass


class Second(Exception):
    pass


class Code(IntEnum):
    NONE = 0


class Pair(NamedTuple):
    left: int
    right: int


class Thing:
    size = 1


def kept_int(value: int) -> int:
    return value


def kept_float(value: float) -> float:
    return value


def kept_tuple(value: tuple[int, int]) -> tuple[int, int]:
    return value


def fourfold(value: i64) -> i64:
    return value * 4


def replaced() -> str:
    """A function that the test replaces by one that returns `replacement`."""
    return "original"


async def asynchronous() -> None:
    pass


def name_of_two_handlers() -> object:
    try:
        raise Second
    except First as error:
        return type(error).__name__
    except Second as error:
        return type(error).__name__


def bool_as_int() -> object:
    return kept_int(True)


def enum_as_int() -> object:
    return type(kept_int(Code.NONE)).__name__


def int_as_float() -> object:
    return kept_float(1)


def named_tuple_as_tuple() -> object:
    return type(kept_tuple(Pair(1, 2))).__name__


def annotation_that_is_not_true() -> object:
    value: Any = "text"
    return kept_int(value)


def product_beyond_64_bits() -> object:
    return fourfold(1 << 62)


def replaced_function() -> object:
    return replaced()


def replaced_constant() -> object:
    return LIMIT


def attribute_of_a_class() -> object:
    thing = Thing()
    owner: Any = Thing
    owner.size = 2
    return thing.size


def new_attribute() -> object:
    thing: Any = Thing()
    thing.colour = "red"
    return thing.colour


def subclass_that_is_not_compiled() -> object:
    return type(type("Subclass", (Thing,), {})()).__name__


def local_after_its_last_use() -> object:
    event = threading.Event()
    reference = weakref.ref(event)
    return "gone" if reference() is None else "there"


def module_of_an_asynchronous_function() -> object:
    function: Any = asynchronous
    return function.__module__


def deep(levels: int) -> int:
    return levels and 1 + deep(levels - 1)
