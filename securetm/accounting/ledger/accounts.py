"""Adds up the entries of a ledger by run, and decides whether more fits the budget. It reads no file and trusts the entries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from securetm.accounting.composition import Total, affordable, largest, total
from securetm.accounting.ledger.hash_chain import Content, Entry
from securetm.accounting.ledger.privacy_filter import ALONE, Cost, Orders, cost_of, filter_epsilon, nothing
from securetm.accounting.spends import Spend, event_as_text, event_from_text
from securetm.contracts import Budget, Unit

OPENED, BUDGET, SPENT, ENDED = "opened", "budget", "spent", "ended"

as_text = lru_cache(maxsize=256)(event_as_text)
_from_text = lru_cache(maxsize=256)(event_from_text)


@dataclass
class RunAccount:
    """One run: the profile it began under, and how many answers of each kind it gave."""

    run: str
    profile: str
    digest: str  # of the profile
    began: str
    entries: int = 0
    answers: Counter[Spend] = field(default_factory=Counter)

    def spends(self, more: Counter[Spend] | None = None) -> list[Spend]:
        """What the run spent, and `more` in addition."""
        return [replace(kind, count=count) for kind, count in (self.answers + (more or Counter())).items()]

    def total(self, budget: Budget) -> Total:
        """What the run spent by itself, at the share of delta that a single run has."""
        return total(self.spends(), ALONE * budget.delta)


class Accounts:
    """The runs of one ledger and its budget."""

    def __init__(self) -> None:
        self.owner = self.corpus = ""
        self.budget = Budget(Unit.DOCUMENT, 0.0, 0.0)
        self.orders: Orders = ()
        self.ended = ""  # the ledger that succeeds this one
        self.runs: dict[str, RunAccount] = {}
        self._cost = nothing(())  # of all entries of all runs, for the filter
        self._ahead: Counter[Spend] = Counter()  # further answers that are known to fit a single run, all together
        self._beyond: dict[Spend, int] = {}  # by kind, a number of answers that does not fit a single run

    def take(self, entry: Entry) -> None:
        """Adds one entry."""
        _TAKEN[entry.content["kind"]](self, entry.content)

    def fits(self, run: str, kind: Spend, count: int) -> bool:
        """Whether so many more answers of this kind stay within the budget."""
        if self._others(run):
            return self._filtered(self._cost.plus(cost_of(kind, self.orders), count)) <= self.budget.epsilon
        return self._ahead[kind] >= count or self._look_ahead(run, kind, count)

    def room(self, run: str, kind: Spend, most: int) -> int:
        """How many more answers of this kind fit, up to `most`."""
        if self._others(run):
            return largest(lambda count: self.fits(run, kind, count), most)
        return self._affordable(self._spends(run), kind, most)

    def spent(self, run: str = "", kind: Spend | None = None, count: int = 0) -> Total:
        """What all runs spend together, with `count` more answers of this kind by `run`."""
        more = Counter({kind: count}) if kind else Counter()
        if len(self.runs.keys() | ({run} if kind else set())) < 2:
            alone = total(self._spends(run or next(iter(self.runs), ""), more), ALONE * self.budget.delta)
            return replace(alone, delta=self.budget.delta)
        cost = self._cost.plus(cost_of(kind, self.orders), count) if kind else self._cost
        return Total(self._filtered(cost), self.budget.delta, f"Renyi filter at orders {', '.join(map(str, self.orders))}")

    def _others(self, run: str) -> bool:
        return any(name != run for name in self.runs)

    def _filtered(self, cost: Cost) -> float:
        return filter_epsilon(cost, self.orders, self.budget)

    def _spends(self, run: str, more: Counter[Spend] | None = None) -> list[Spend]:
        return self.runs[run].spends(more) if run in self.runs else RunAccount("", "", "", "").spends(more)

    def _look_ahead(self, run: str, kind: Spend, count: int) -> bool:
        """Composes ahead and remembers how many answers fit, because composing is slow and an answer must be quick."""
        if self._given(run, kind) + count >= self._beyond.get(kind, math.inf):
            return False
        others = Counter({held: n for held, n in self._ahead.items() if held != kind and n})
        if others and self._grant(run, others, kind, count):
            return True
        return self._grant(run, Counter(), kind, count)  # without what was reserved for other kinds

    def _grant(self, run: str, held: Counter[Spend], kind: Spend, count: int) -> bool:
        """Reserves as many answers as were given already, or half of what may be left, or fewer, until they fit."""
        given, beyond = self._given(run, kind), self._beyond.get(kind, 0)
        asked = max(count, (beyond - given) // 2 if beyond else given)
        while not self._affordable(self._spends(run, held + Counter({kind: asked - 1})), kind, 1):
            if not held:
                self._beyond[kind] = given + asked
            if asked == count:
                return False
            asked = max(count, asked // 4)
        self._ahead = held
        self._ahead[kind] = asked
        return True

    def _given(self, run: str, kind: Spend) -> int:
        return self.runs[run].answers[kind] if run in self.runs else 0

    def _affordable(self, before: Sequence[Spend], kind: Spend, most: int) -> int:
        return affordable(before, kind, self.budget.epsilon, ALONE * self.budget.delta, most)

    def _opened(self, content: Content) -> None:
        self.owner, self.corpus = str(content["party"]), str(content["corpus"])
        self.orders = tuple(int(order) for order in content["orders"])
        self._cost = nothing(self.orders)
        self._set_budget(content)

    def _set_budget(self, content: Content) -> None:
        self.budget = Budget(Unit(content["unit"]), float(content["epsilon"]), float(content["delta"]))
        self._ahead.clear()
        self._beyond.clear()

    def _end(self, content: Content) -> None:
        self.ended = str(content["successor"])

    def _spent(self, content: Content) -> None:
        kind = Spend(_from_text(content["event"]), content["slack"])
        count = int(content["count"])
        about = dict(content["about"])
        began = content["run"], str(about.get("profile", "")), str(about.get("digest", "")), str(content["time"])
        account = self.runs.setdefault(content["run"], RunAccount(*began))
        account.entries += 1
        account.answers[kind] += count
        self._cost = self._cost.plus(cost_of(kind, self.orders), count)
        if self._ahead[kind] >= count:
            self._ahead[kind] -= count
        else:  # another process gave this answer
            self._ahead.clear()


_TAKEN = {OPENED: Accounts._opened, BUDGET: Accounts._set_budget, SPENT: Accounts._spent, ENDED: Accounts._end}
