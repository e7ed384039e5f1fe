"""Brokers and controllers: their registrations, sessions, fencing, features and log directories."""
