"""Decisions on who may do what, and how much of it: SCRAM credentials, client quotas, access control entries."""
