"""Engines carry out the pieces of one party's answer, in this process or in others. No message tells others which it has.

An engine is a dataclass whose fields are its settings in `[engine]` of the party's own file. Making one starts nothing.
An engine of another package is found through its entry point in the group `securetm.engines`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

from securetm.contracts import Engine
from securetm.data_classes import dataclass, field
from securetm.errors import BadSetting
from securetm.registries import Registry
from securetm.settings import OwnTable, from_table

IN_PROCESS = "in-process"

ENGINES = Registry(
    "engine",
    "securetm.engines",
    "securetm.contracts:Engine",
    {
        IN_PROCESS: "securetm.answers.block_answers:InThisProcess",
        "pool": "securetm.engines.local_pool:LocalPool",
        "ray": "securetm.engines.ray_engine:RayEngine",
    },
)
WHERE = "[engine]"


@dataclass(frozen=True)
class EngineChoice(OwnTable):
    """An engine by name, and its settings: `[engine]` in a party's own file. It is in no plan, no message and no digest."""

    kind: str = IN_PROCESS
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Any) -> Self:
        """The choice that a table makes, with all its mistakes told at once. No process is started."""
        if not isinstance(table, Mapping):
            raise BadSetting("the party's file", "engine", str(table), f"must be a table {WHERE}")
        settings = {name: value for name, value in table.items() if name != "kind"}
        kind = table.get("kind")
        if not isinstance(kind, str):
            shown = None if kind is None else str(kind)
            raise BadSetting(WHERE, "kind", shown, "must be the name of an engine", ENGINES.names())
        ENGINES.find(kind)
        chosen = cls(kind, settings)
        chosen.make()
        return chosen

    def facts(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.settings}

    def make(self) -> Engine:
        """The engine. Its workers start with its first tasks."""
        return cast("Engine", from_table(ENGINES.load(self.kind), self.settings, WHERE))
