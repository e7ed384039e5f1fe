"""Modules that are imported at their first use, because most processes never need them, or not at their start.

They are named at the top of the importing module, as all imports are, once for readers and tools and once for Python:

    if TYPE_CHECKING:
        from broker.share import hosted
    else:  # with the first share partition
        hosted = lazy("broker.share.hosted")

`hosted.Hosted` then imports the module. A test compares the two names. mypyc leaves out the `else`, so a module of the
compiled core can't do this.
"""

from __future__ import annotations

from importlib import import_module


class LazyModule:
    """A module that isn't imported yet."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        return getattr(import_module(self._name), attribute)


def lazy(name: str) -> LazyModule:
    """Returns a module that is imported when one of its attributes is read, which raises ImportError if it is missing.
    It isn't stored, so that a test can replace an attribute."""
    return LazyModule(name)
