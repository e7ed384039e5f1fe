"""Compaction: chooses logs, decides which records stay, and swaps the cleaned segments in."""
