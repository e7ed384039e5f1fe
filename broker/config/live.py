"""The broker's current configuration, for code that must see dynamic changes."""

from __future__ import annotations

from collections.abc import Callable

from broker.config.layers import Layers


class LiveConfig:
    """The current layers of a broker's configuration; a change of a dynamic option replaces them as a whole."""

    __slots__ = ("_layers", "_subscribers", "effective")

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self.effective = layers.effective
        """The current options."""
        self._subscribers: list[Callable[[], None]] = []

    @property
    def layers(self) -> Layers:
        """The current layers."""
        return self._layers

    @layers.setter
    def layers(self, layers: Layers) -> None:
        self._layers, self.effective = layers, layers.effective
        for changed in self._subscribers:
            changed()

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Calls `changed` after each change."""
        self._subscribers.append(changed)
