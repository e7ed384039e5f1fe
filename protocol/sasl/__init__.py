"""SASL mechanisms, both sides of each, sans-IO: a message in, a message out."""
