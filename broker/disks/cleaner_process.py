"""The process that cleans logs for a broker: reads orders from standard input, and writes their outcomes to standard
output.

It is a process and not a thread, because walking records takes all of an interpreter's time, and the broker's
interpreter must serve clients. It only works on files, so it can be killed at any time; it ends with its broker.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Thread

from broker.clock import Throttler
from broker.disks.cleaner_client import Failed, Order, Outcome
from protocol.errors import KafkaError
from storage.cleaner.cleaner import clean
from storage.disk import OsDisk

NICENESS = 10
"""Niceness: every other process goes first, above all the broker."""


def main() -> int:
    """Serves orders until the broker ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes; the broker ends this one
    os.nice(NICENESS)
    orders: SimpleQueue[Order] = SimpleQueue()
    Thread(target=_listen, args=(orders,), daemon=True).start()
    while True:
        for outcome in carry_out(orders.get()):
            pickle.dump(outcome, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _listen(orders: SimpleQueue[Order]) -> None:
    """Reads orders, and exits when the pipe is closed, which happens even if the broker is killed: then nothing more
    may be written.
    """
    try:
        while True:
            orders.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)


def carry_out(order: Order) -> Iterator[Outcome]:
    """Yields the outcomes of an order; a summary or a failure is the last."""
    try:
        yield from clean(order.job, disk=OsDisk(), throttle=Throttler(order.bytes_per_second))
    except OSError as error:
        yield Failed(error.errno or 0, str(error))
    except KafkaError as error:
        yield Failed(0, error.message)
    except Exception as error:  # a bug must not be repeated endlessly: the broker reports it
        yield Failed(0, repr(error))


if __name__ == "__main__":
    sys.exit(main())
