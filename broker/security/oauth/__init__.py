"""Tokens of OAUTHBEARER: who issued them, and whom they prove."""
