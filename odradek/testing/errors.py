"""Errors of brokers under test."""

from __future__ import annotations


class BrokerError(Exception):
    """A broker did not start, or is not in a state in which it could do what it was asked for."""


class ControlError(BrokerError):
    """The control server refused a request; the text says what would be right."""

    def __init__(self, status: int, message: str) -> None:
        """`status` is that of HTTP: 404 where there is no such thing, 409 where it cannot be done now or here."""
        super().__init__(message)
        self.status = status


class RequestRefused(BrokerError):
    """A broker refused a request of Kafka's protocol."""

    def __init__(self, code: int, message: str) -> None:
        """`code` is one of Kafka's error codes."""
        super().__init__(f"{message} (error code {code})")
        self.code = code


class WaitTimeout(TimeoutError):
    """A condition did not come true in time; the text has what was there instead."""
