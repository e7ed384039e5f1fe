"""SASL mechanisms, client and broker side, sans-IO: a message in, a message out."""
