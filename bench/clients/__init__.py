"""Loops around clients, in processes of their own, so that their CPU time is not counted as the broker's."""
