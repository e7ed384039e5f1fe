"""Decisions on SCRAM credentials, delegation tokens, client quotas and ACLs."""
