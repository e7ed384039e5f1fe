"""The process that cleans logs for a broker: reads jobs from standard input, and writes their outcomes to standard
output.

It is a process and not a thread: cleaning walks records, which takes all of an interpreter's time, and the broker's
interpreter must answer clients. It only works on files, so that it can be killed at any moment; it ends with its
broker.
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
"""Every other process goes first, above all the broker."""


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
    """Reads orders. The broker's end closes even if the broker is killed, and then nothing more may be written."""
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
