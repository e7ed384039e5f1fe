"""Scrapes a broker's metrics again and again from a process of its own, as Prometheus does.

    python -m bench.clients.scraper HOST:PORT EACH_S SECONDS

Prints a line when it begins, and at the end the seconds of each scrape, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request

BEGINS = "scrapes"
TIMEOUT_S = 10.0


def scrape(address: str) -> float:
    """Returns the seconds until the whole page has arrived. Raises OSError."""
    began = time.monotonic()
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=TIMEOUT_S) as page:
        page.read()
    return time.monotonic() - began


def main(address: str, each_s: float, seconds: float) -> None:
    print(BEGINS, flush=True)
    began, took_s = time.monotonic(), list[float]()
    while (due_s := (len(took_s) + 0.5) * each_s) < seconds:
        time.sleep(max(0.0, began + due_s - time.monotonic()))
        took_s.append(scrape(address))
    print(json.dumps(took_s))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
