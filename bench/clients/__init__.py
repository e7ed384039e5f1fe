"""The loops around clients that run as processes of their own, so that their CPU time is not the broker's."""
