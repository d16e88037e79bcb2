"""The accounts of a ledger: its entries added up by run, and whether more fits the budget. `Ledger` keeps them in a file.

A run without a bound takes nothing of the budget: what later runs add is bounded whatever it showed. It makes the total
unbounded, which `all_runs` says.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

from securetm.accounting.composition import Total, affordable, largest, total, within
from securetm.accounting.ledger.ledger_file import Content, Entry
from securetm.accounting.ledger.privacy_filter import ALONE, Orders, cost_of, filter_epsilon, nothing, orders_for
from securetm.accounting.spends import Spend, event_as_text, event_from_text
from securetm.contracts import Budget, Unit
from securetm.data_classes import dataclass, field, replace

OPENED, BUDGET, SPENT, ANSWERED, UNBOUNDED, ENDED = "opened", "budget", "spent", "answered", "unbounded", "ended"
EARLIER = "earlier"  # in place of a question: of all that a run spent in a ledger before this one
LOST = "lost"  # in place of a digest: paid for in an earlier ledger, and never computed
MOST = 1_000_000  # answers that `remaining` looks ahead

as_text = lru_cache(maxsize=256)(event_as_text)
_from_text = lru_cache(maxsize=256)(event_from_text)


@dataclass
class PaidAnswer:
    """One answer that was paid for. It leaves only once its digest is in the ledger, so without one it never left."""

    entry: int  # that paid for it
    question: str
    number: int
    members: str  # digest of who was asked, by their identities
    asked: str  # digest of everything that was asked
    answer: str = ""  # digest of the answer with the noise in it, before anything masks or encrypts it
    price: Spend | None = None  # of one answer; None where an earlier ledger has it


@dataclass
class RunAccount:
    """One run: the profile it began under, how many answers of each kind it gave, and whether it has a bound at all."""

    run: str
    profile: str
    digest: str  # of the profile
    began: str
    entries: int = 0
    answers: Counter[Spend] = field(default_factory=Counter)
    unbounded: str = ""  # why what it released has no bound; empty where it has one
    paid: list[PaidAnswer] = field(default_factory=list)  # in their order

    def paid_for(self, question: str, number: int) -> PaidAnswer | None:
        """The last answer to that question and number that was paid for."""
        wanted = question, number
        return next((one for one in reversed(self.paid) if (one.question, one.number) == wanted), None)

    def was_asked(self, question: str) -> bool:
        """Whether an answer to that question was paid for."""
        return any(one.question == question for one in self.paid)

    def latest(self, question: str) -> int:
        """The highest number of that question that was paid for; -1 if there is none."""
        return max((one.number for one in self.paid if one.question == question), default=-1)

    def spends(self) -> list[Spend]:
        return _listed(self.answers)

    def total(self, budget: Budget) -> Total:
        """What the run spent by itself, at the share of delta that a single run has."""
        return total(self.spends(), ALONE * budget.delta)


class Accounts:
    """The runs of one ledger and its budget. Without a ledger, of runs that are only planned."""

    def __init__(self, budget: Budget | None = None, orders: Orders = ()) -> None:
        self.owner = self.corpus = ""
        self.budget = Budget(Unit.DOCUMENT, 0.0, 0.0)
        self.has_budget = False  # a ledger that was opened by a run without a bound gets its budget later
        self.orders: Orders = ()
        self.ended = ""  # the ledger that succeeds this one; empty while entries are still made
        self.number = 0  # of the entry that was taken last
        self._runs: dict[str, RunAccount] = {}
        self._cost = nothing(())  # of all entries of all runs, for the filter
        self._ahead: Counter[Spend] = Counter()  # further answers that are known to fit a single run, all together
        self._beyond: dict[Spend, int] = {}  # by kind, a number of answers that does not fit a single run
        if budget is not None:
            self._set_budget(budget, orders or orders_for(budget))

    # ---- entries

    def take(self, entry: Entry) -> None:
        """Adds one entry."""
        self.number, content = entry.number, entry.content
        kind = content["kind"]
        if kind == OPENED:
            self.owner, self.corpus = str(content["party"]), str(content["corpus"])
        if kind == BUDGET or (kind == OPENED and "epsilon" in content):
            budget = Budget(Unit(content["unit"]), float(content["epsilon"]), float(content["delta"]))
            self._set_budget(budget, self.orders if self.has_budget else tuple(int(order) for order in content["orders"]))
        elif kind == SPENT:
            self._take_spend(content)
        elif kind == ANSWERED:
            self._take_answer(content)
        elif kind == UNBOUNDED:
            self._account_of(content).unbounded = str(content["why"])
        elif kind == ENDED:
            self.ended = str(content["successor"])
        elif kind != OPENED:
            raise ValueError("an entry of an unknown kind")

    def _set_budget(self, budget: Budget, orders: Orders) -> None:
        if not self.has_budget:
            self.orders, self._cost = orders, nothing(orders)
        self.budget, self.has_budget = budget, True
        self._ahead.clear()
        self._beyond.clear()

    def _account_of(self, content: Content) -> RunAccount:
        about = dict(content["about"])
        began = content["run"], str(about.get("profile", "")), str(about.get("digest", "")), str(content["time"])
        account = self._runs.setdefault(content["run"], RunAccount(*began))
        account.entries += 1
        return account

    def _take_spend(self, content: Content) -> None:
        if not self.has_budget:
            raise ValueError("an answer is paid for before there is a budget")
        kind = Spend(_from_text(content["event"]), content["slack"])
        count, about, account = int(content["count"]), dict(content["about"]), self._account_of(content)
        if "question" in about and about["question"] != EARLIER:
            what = str(about["question"]), int(about.get("number", 0)), str(about.get("members", ""))
            account.paid.append(PaidAnswer(self.number, *what, str(about.get("asked", "")), "", kind))
        account.paid += [PaidAnswer(self.number, *one) for one in content.get("paid", ())]
        self.add(account, kind, count)

    def _take_answer(self, content: Content) -> None:
        account = self._runs[content["run"]]
        paid = next(one for one in reversed(account.paid) if one.entry == content["entry"])
        if paid.answer:  # one that was carried over from an earlier ledger has a digest or is lost
            raise ValueError("an answer has two digests")
        paid.answer = str(content["digest"])
        account.entries += 1

    def add(self, account: RunAccount, kind: Spend, count: int) -> None:
        """Adds so many answers of one kind to the account of a run."""
        self._runs.setdefault(account.run, account)
        account.answers[kind] += count
        self._cost = self._cost.plus(cost_of(kind, self.orders), count)
        if self._ahead[kind] >= count:
            self._ahead[kind] -= count
        else:  # another process gave this answer
            self._ahead.clear()

    # ---- what was spent

    def runs(self) -> tuple[RunAccount, ...]:
        """The account of each run, in the order in which the runs began."""
        self._catch_up()
        return tuple(self._runs.values())

    def account(self, run: str) -> RunAccount | None:
        self._catch_up()
        return self._runs.get(run)

    def spends(self, run: str) -> list[Spend]:
        account = self.account(run)
        return account.spends() if account else []

    def spent(self, run: str = "", kind: Spend | None = None, count: int = 0) -> Total:
        """What all runs with a bound spend of the budget together, with `count` more answers of this kind by `run`.

        It decides what else fits, by the rule for a single run or for several. What all runs may have told is `all_runs`.
        """
        self._catch_up()
        bounded = [account for account in self._runs.values() if account.answers]
        if len({account.run for account in bounded} | ({run} if kind else set())) < 2:
            answers = Counter[Spend]({kind: count} if kind else {})
            alone = total(_listed(sum((account.answers for account in bounded), answers)), ALONE * self.budget.delta)
            return replace(alone, delta=self.budget.delta)
        cost = self._cost.plus(cost_of(kind, self.orders), count) if kind else self._cost
        epsilon = filter_epsilon(cost, self.orders, self.budget)
        return Total(epsilon, self.budget.delta, f"Renyi filter at orders {', '.join(map(str, self.orders))}")

    # ---- what fits

    def is_kept(self) -> bool:
        """Whether what was entered stays within the budget. Of a single run, fast accountants are asked first."""
        bounded = [account for account in self._runs.values() if account.answers]
        if len(bounded) < 2:
            spends = [spend for account in bounded for spend in account.spends()]
            return within(spends, self.budget.epsilon, ALONE * self.budget.delta)
        return self.spent().epsilon <= self.budget.epsilon

    def remaining(self, run: str, spend: Spend, most: int = MOST) -> int:
        """How many more such answers this run could give, up to `most`."""
        self._catch_up()
        kind = replace(spend, count=1)
        if self._others(run):
            return largest(lambda count: self.fits(run, kind, count), most)
        return self._affordable(self._given(run), kind, most)

    def fits(self, run: str, kind: Spend, count: int) -> bool:
        """Whether so many more answers of this kind stay within the budget.

        For a single run it composes ahead and remembers how many answers fit: composing is slow, and an answer must be quick.
        """
        if self._others(run):
            cost = self._cost.plus(cost_of(kind, self.orders), count)
            return filter_epsilon(cost, self.orders, self.budget) <= self.budget.epsilon
        if self._ahead[kind] >= count:
            return True
        if self._given(run)[kind] + count >= self._beyond.get(kind, math.inf):
            return False
        others = Counter({held: n for held, n in self._ahead.items() if held != kind and n})
        # The second time without what was reserved for other kinds.
        return (bool(others) and self._grant(run, others, kind, count)) or self._grant(run, Counter(), kind, count)

    def _grant(self, run: str, held: Counter[Spend], kind: Spend, count: int) -> bool:
        """Reserves as many answers as were given already, or half of what may be left, or fewer, until they fit."""
        before, beyond = self._given(run), self._beyond.get(kind, 0)
        given = before[kind]
        asked = max(count, (beyond - given) // 2 if beyond else given)
        while not self._affordable(before + held + Counter({kind: asked - 1}), kind, 1):
            if not held:
                self._beyond[kind] = given + asked
            if asked == count:
                return False
            asked = max(count, asked // 4)
        self._ahead = held
        self._ahead[kind] = asked
        return True

    def _others(self, run: str) -> bool:
        return any(name != run and account.answers for name, account in self._runs.items())

    def _given(self, run: str) -> Counter[Spend]:
        return self._runs[run].answers if run in self._runs else Counter()

    def _affordable(self, before: Counter[Spend], kind: Spend, most: int) -> int:
        return affordable(_listed(before), kind, self.budget.epsilon, ALONE * self.budget.delta, most)

    def _catch_up(self) -> None:
        """Takes what else was entered. In memory there is nothing else."""


def _listed(answers: Counter[Spend]) -> list[Spend]:
    return [replace(kind, count=count) for kind, count in (+answers).items()]
