"""OAUTHBEARER tokens: their issuers, and the clients that they authenticate."""
