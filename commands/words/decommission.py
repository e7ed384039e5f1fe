"""`odradek cluster decommission`."""

from __future__ import annotations

from commands.words.balancing import declare_decommission as declare

__all__ = ["declare"]
