"""Compaction: which logs, what of them stays, and how it takes its place."""
