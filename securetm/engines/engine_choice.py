"""Which engine a party chose for itself: `[engine]` in its own file. It is in no plan, no message and no digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

from securetm.contracts import Engine
from securetm.engines import ENGINES, IN_PROCESS
from securetm.errors import BadSetting
from securetm.settings import from_table

WHERE = "[engine]"


@dataclass(frozen=True)
class EngineChoice:
    """An engine by name, and its settings."""

    kind: str = IN_PROCESS
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Any) -> Self:
        """The choice that a table makes, with all its mistakes told at once. No process is started."""
        if not isinstance(table, Mapping):
            raise BadSetting("the party's file", "engine", str(table), f"must be a table {WHERE}")
        settings = {name: value for name, value in table.items() if name != "kind"}
        chosen = cls(_kind_in(table), settings)
        chosen.make()
        return chosen

    def facts(self) -> dict[str, Any]:
        """What was chosen, for the party's own user."""
        return {"kind": self.kind, **self.settings}

    def make(self) -> Engine:
        """The engine. Its workers start with its first tasks."""
        return cast(Engine, from_table(ENGINES.load(self.kind), self.settings, WHERE))


def _kind_in(table: Mapping[str, Any]) -> str:
    kind = table.get("kind")
    if not isinstance(kind, str):
        shown = None if kind is None else str(kind)
        raise BadSetting(WHERE, "kind", shown, "must be the name of an engine", ENGINES.names())
    ENGINES.find(kind)
    return kind
