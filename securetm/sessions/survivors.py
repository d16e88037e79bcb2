"""Holds each question to one list of survivors, in every session in which it is asked. It keeps lists, and no answers.

Two sums of the same vectors over lists that differ in one party show that party's vector. This happens without malice if a
coordinator restarts and a party is missing by then. So an honest coordinator keeps to the list that it named first, and a
party opens a sum over no other list.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from securetm.contracts import Cohort, Roster, Store
from securetm.data_classes import dataclass
from securetm.errors import NotInCohort, Refused, SecuretmError


class TooFewInSum(Refused):
    """a sum over {found:party|parties} is below the {need} that this round was promised"""

    found: int
    need: int


class TooFewDocuments(Refused):
    """a sum over {parties:party|parties} with {found:document|documents} announced is below the {need} that were promised"""

    found: int
    parties: int
    need: int
    hint = "the roster says how many documents each party brings at least: wait for more parties, or have them announce more"


class SurvivorsMissing(SecuretmError):
    """this round was begun before with {missing}, from which no message came now"""

    missing: str  # their names
    hint = "a sum without them would show what they sent: resume the run when they are there again, or begin a new one"


class SurvivorsChanged(Refused):
    """this question was opened before, over other survivors"""

    hint = "two sums over lists one party apart show its vector: wait until the same parties are there, or begin a new run"


def check_least(roster: Roster, cohort: Cohort, survivors: Collection[str]) -> None:
    """Refuses a sum over fewer parties or documents than the round was promised to hold.

    How many documents a party brings at least stands in the roster, which everybody signed. The coordinator has no say in it.
    """
    if len(survivors) < cohort.fewest:
        raise TooFewInSum(len(survivors), cohort.fewest)
    documents = sum(roster.documents.get(name, 0) for name in survivors)
    if documents < cohort.least.documents:
        raise TooFewDocuments(documents, len(survivors), cohort.least.documents)


@dataclass(frozen=True)
class SurvivorList:
    """The one list of survivors of a question, by name and public key. A cohort without a question has none."""

    store: Store
    roster: Roster
    cohort: Cohort

    def hold(self, survivors: Collection[str]) -> None:
        """Keeps the list on disk before anything is sent that opens its sum. Any other list is refused from then on.

        A list that is too short is refused always.
        """
        check_least(self.roster, self.cohort, survivors)
        if not self.cohort.question:
            return
        before, now = self._before(), self._identified(survivors)
        if before is None:
            self.store.put(self._key, json.dumps(sorted(now)).encode())
        elif before != now:
            raise SurvivorsChanged()

    def counts(self, party: str) -> bool:
        """Whether this party's answer goes into the sum: the first list decides. Run by the coordinator."""
        before = self._before()
        return before is None or self._identified([party]) <= before

    def settle(self, survivors: Collection[str]) -> None:
        """Refuses a list without a party of the first list, and keeps it. Run by the coordinator before it names the list."""
        if gone := (self._before() or frozenset()) - self._identified(survivors):
            raise SurvivorsMissing(", ".join(sorted(one.split(" ")[0] for one in gone)))
        self.hold(survivors)

    @property
    def _key(self) -> str:
        return f"survivors {self.cohort.question.hex()}"

    def _identified(self, names: Collection[str]) -> frozenset[str]:
        """These members of the cohort with their public keys: an organisation that took over a name is another one."""
        who = dict(zip(self.cohort.members, self.cohort.who, strict=True))
        if strangers := [name for name in names if name not in who]:
            raise NotInCohort(strangers[0])
        return frozenset(who[name] for name in names)

    def _before(self) -> frozenset[str] | None:
        kept = self.store.get(self._key) if self.cohort.question else None
        return None if kept is None else frozenset(json.loads(kept))
