"""The process that cleans logs for a broker: jobs come on standard input, their outcomes go to standard output.

A process and not a thread: cleaning walks records, which takes all of an interpreter's time, and the broker's own must
answer clients. It has only files to do with, so that it can be killed at any moment; without its broker it ends.
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
"""Whatever else wants the processor goes first, the broker above all."""


def main() -> int:
    """Serve orders until the broker goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the broker says when to end
    os.nice(NICENESS)
    orders: SimpleQueue[Order] = SimpleQueue()
    Thread(target=_listen, args=(orders,), daemon=True).start()
    while True:
        for outcome in carry_out(orders.get()):
            pickle.dump(outcome, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _listen(orders: SimpleQueue[Order]) -> None:
    """Takes orders in. The broker's end closes even if it is killed, and then nothing more may be written."""
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
    except Exception as error:  # a bug of ours must not be tried again and again: the broker is told of it
        yield Failed(0, repr(error))


if __name__ == "__main__":
    sys.exit(main())
