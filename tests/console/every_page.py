"""A path of each page, for the tests that open them all."""

from __future__ import annotations

from typing import Final

PAGES: Final = {
    "overview": "/",
    "topics": "/topics?sort=-records",
    "new-topic": "/create-topic",
    "records": "/topics/orders/records",
    "search": "/topics/orders/records?json=total%3E900",
    "live": "/topics/orders/records?live=1",
    "record": "/topics/orders/records/0/7",
    "produce": "/topics/orders/produce",
    "partitions": "/topics/orders",
    "configs": "/topics/orders/configs?edit=retention.ms",
    "topic-groups": "/topics/orders/groups",
    "producers": "/topics/payments/producers",
    "operations": "/topics/orders/operations",
    "hostile": "/topics/hostile/records",
    "groups": "/groups",
    "group": "/group?name=billing",
    "share-group": "/group?name=packers",
    "share-partition": "/share?name=packers&topic=payments&partition=0",
    "share-record": "/share/record?name=packers&topic=payments&partition=0&offset=3",
    "share-letters": "/share/letters?name=packers",
    "transactions": "/transactions",
    "transaction": "/transaction?id=shop-1",
    "hanging": "/transactions/hanging",
    "clients": "/clients",
    "telemetry": "/clients/telemetry",
    "security": "/security",
    "users": "/security/users",
    "quotas": "/security/quotas",
    "absent": "/topics/absent",
}
"""The path by the name of its screenshot."""

PARTS: Final = ("/live/", "/charts/")
FILES: Final = ("/download", "/export")
"""The beginnings and ends of routes that are parts of pages, or files."""


def is_page(route: str) -> bool:
    """True if a route of the console answers with a page."""
    return not route.startswith(PARTS) and not route.endswith(FILES)
