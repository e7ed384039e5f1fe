"""Takes a tenth off each order, with FastStream."""

from __future__ import annotations

from faststream.kafka import KafkaBroker

ORDERS, DISCOUNTED = "orders", "discounted"


def make_app(bootstrap: str) -> KafkaBroker:
    """Returns the application: FastStream calls the client a broker."""
    app = KafkaBroker(bootstrap)

    @app.subscriber(ORDERS, group_id="discounts", auto_offset_reset="earliest")
    @app.publisher(DISCOUNTED)
    async def discount(amount: int) -> int:
        return amount * 9 // 10

    return app
