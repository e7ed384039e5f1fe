"""Errors of brokers under test."""

from __future__ import annotations


class BrokerError(Exception):
    """A broker didn't start, or its state doesn't allow the request."""


class ControlError(BrokerError):
    """The control server rejected a request; the text says what is expected."""

    def __init__(self, status: int, message: str) -> None:
        """`status` is the HTTP status: 404 if the thing doesn't exist, 409 if the request can't be carried out now or
        on this broker."""
        super().__init__(message)
        self.status = status


class RequestRefused(BrokerError):
    """A broker rejected a request of Kafka's protocol."""

    def __init__(self, code: int, message: str) -> None:
        """`code` is one of Kafka's error codes."""
        super().__init__(f"{message} (error code {code})")
        self.code = code


class WaitTimeout(TimeoutError):
    """A condition did not become true in time; the text has the last state."""
