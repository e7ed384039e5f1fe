"""The result of an append."""

from __future__ import annotations


class Appended:
    """The offsets of an append. For a duplicate, which is not written again, the offsets of the first append."""

    __slots__ = ("base_offset", "duplicate", "last_offset", "log_append_time_ms", "log_start_offset")

    def __init__(
        self, base_offset: int, last_offset: int, log_append_time_ms: int, log_start_offset: int, duplicate: bool
    ) -> None:
        """`log_append_time_ms` is -1 unless the topic's timestamp type is LogAppendTime."""
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Appended) and self.values == other.values

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return f"Appended{self.values}"

    @property
    def values(self) -> tuple[int, int, int, int, bool]:
        """All fields, for comparison."""
        return (self.base_offset, self.last_offset, self.log_append_time_ms, self.log_start_offset, self.duplicate)
