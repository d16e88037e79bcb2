"""Holds each question to one list of survivors, in every session in which it is asked. It keeps lists, and no answers.

Two sums of the same vectors over lists that differ in one party show that party's vector. This happens without malice if a
coordinator restarts and a party is missing by then. So an honest coordinator keeps to the list that it named first, and a
party opens a sum over no other list.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from securetm.contracts import Cohort, Store
from securetm.sessions.session_errors import SurvivorsChanged, SurvivorsMissing


@dataclass(frozen=True)
class SurvivorList:
    """The one list of survivors of a question. A cohort without a question has none."""

    store: Store
    question: bytes

    @classmethod
    def of(cls, store: Store, cohort: Cohort) -> SurvivorList:
        """Returns the list of the question that this cohort is asked."""
        return cls(store, cohort.question)

    def hold(self, survivors: Collection[str]) -> None:
        """Keeps the list on disk before anything is sent that opens its sum. Any other list is refused from then on."""
        if not self.question:
            return
        before = self._before()
        if before is None:
            self.store.put(self._key, json.dumps(sorted(survivors)).encode())
        elif before != frozenset(survivors):
            raise SurvivorsChanged()

    def counts(self, party: str) -> bool:
        """Whether this party's answer goes into the sum: the first list decides. Run by the coordinator."""
        before = self._before()
        return before is None or party in before

    def settle(self, survivors: Collection[str]) -> None:
        """Refuses a list without a party of the first list, and keeps it. Run by the coordinator before it names the list."""
        if gone := (self._before() or frozenset()) - frozenset(survivors):
            raise SurvivorsMissing(", ".join(sorted(gone)))
        self.hold(survivors)

    @property
    def _key(self) -> str:
        return f"survivors {self.question.hex()}"

    def _before(self) -> frozenset[str] | None:
        kept = self.store.get(self._key) if self.question else None
        return None if kept is None else frozenset(json.loads(kept))
