"""A party's own record of what it released. It checks the budget, enters that an answer is paid for, computes it, enters the
answer's digest, and only then sends it. What has no bound is entered too, once for each run.

There is one file for each corpus, used by all runs and profiles. It never leaves the party. Peers countersign its head, so that
a ledger which was rolled back is detected. `privacy_filter` defines how spends add up; protocols/privacy_ledger.md says what
the file withstands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from securetm.accounting.ledger.accounts import ANSWERED, BUDGET, ENDED, MOST, OPENED, SPENT, UNBOUNDED, Accounts, as_text
from securetm.accounting.ledger.ledger_file import (
    VERSION,
    Content,
    Entry,
    LedgerFile,
    LedgerRolledBack,
    closed_if_refused,
    tampered,
)
from securetm.accounting.ledger.privacy_filter import orders_for
from securetm.accounting.spends import Spend
from securetm.contracts import Budget, Unit
from securetm.data_classes import dataclass, replace
from securetm.errors import Failed, Mistake, Misuse, SecuretmError
from securetm.interrupts import undisturbed
from securetm.settings import require


class BudgetExhausted(SecuretmError):
    """{run} stops: of epsilon {epsilon:upward} per {unit}, {spent:upward} is spent; {planned} more would make {would:upward}"""

    run: str
    planned: int
    unit: str
    spent: float
    would: float
    epsilon: float
    delta: float
    hint = "nothing was sent for it; keep the model as it is, or agree on a larger budget, which is entered in the ledger"


class LedgerReplaced(Misuse):
    """the ledger of {party} is not the one that {witness} signed before"""

    party: str
    witness: str
    hint = "put the former ledger back: a new one would omit what was spent"


@dataclass(frozen=True)
class SeenHead:
    """The head of a ledger that somebody saw after so many entries, and the ledger's identity where it is known."""

    who: str
    number: int
    head: bytes
    ledger: bytes = b""


class Ledger(Accounts):
    """The ledger of one party over one corpus. One thread at a time; any number of processes may share the file."""

    def __init__(self, file: LedgerFile) -> None:
        super().__init__()
        self._file = file
        with closed_if_refused(file):
            self._catch_up()
            for _, number, head, _ in file.witnesses():
                self.check_against(number, head)

    @staticmethod
    def open(path: Path, owner: str, budget: Budget | None, corpus: str = "") -> Ledger:
        """The owner's ledger, whole and checked; a new one if there is none. Another budget than before becomes an entry.

        With None it has the budget that it had, if any: a run without a bound spends none.
        """
        opening = {"kind": OPENED, "version": VERSION, "party": owner, "corpus": corpus}
        if budget is not None:
            where = "the ledger's budget"
            require(0 < budget.epsilon < float("inf"), where, "epsilon", budget.epsilon, "must be a finite number above 0")
            require(0 <= budget.delta < 1, where, "delta", budget.delta, "must be at least 0 and below 1")
            opening |= {**_written(budget), "orders": orders_for(budget)}
        ledger = Ledger(LedgerFile.write(path, {**opening, "time": _now()}))
        with closed_if_refused(ledger._file):
            ledger._admit(owner, corpus, budget)
        return ledger

    @staticmethod
    def reopen(path: Path, epsilon: float | None = None) -> Ledger:
        """The ledger in that file under its own owner and budget, or under another epsilon."""
        with Ledger.read(path) as ledger:
            owner, corpus, budget = ledger.owner, ledger.corpus, ledger.budget if ledger.has_budget else None
        if epsilon is not None:
            if budget is None:
                raise Mistake(
                    "{path} has no budget yet: only runs without a bound were entered in it",
                    "the first run under a profile with a budget gives the ledger that budget; change it after that",
                    path=str(path),
                )
            budget = replace(budget, epsilon=epsilon)
        return Ledger.open(path, owner, budget, corpus)

    @staticmethod
    def read(path: Path) -> Ledger:
        """The ledger in that file for reading: checked as a whole, and not changed."""
        return Ledger(LedgerFile.read(path))

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def identity(self) -> bytes:
        """The digest of the opening entry, which differs for every ledger."""
        opened = self._file.head_at(1)
        assert opened is not None  # every ledger begins with its opening
        return opened

    # ---- check, enter, compute, enter the digest, then send

    def record(self, run: str, spend: Spend, about: Mapping[str, str | int], paid: Sequence[Sequence[str | int]] = ()) -> None:
        """Enters answers whether or not they fit the budget. The entry is on disk when this returns.

        `paid` says which answers of an earlier ledger they were: fields of `PaidAnswer`, from the question on.
        """
        with self._entering():
            self._append(run, spend, about, {"paid": [list(one) for one in paid]} if paid else {})

    def charge(self, run: str, spend: Spend, about: Mapping[str, str | int]) -> int:
        """Checks and enters an answer in one transaction, so that two processes cannot both spend what is left.

        `about` names the profile, its digest, the unit, the question, its number and its serial number, and digests of who was
        asked (`members`) and of everything that was asked (`asked`). An answer counts as spent even if the process crashes
        before it is sent. Returns the number of the entry.
        """
        with self._entering():
            self._check_affordable(run, spend)
            self._append(run, spend, about)
            return self._file.number + 1

    def look_ahead(self, run: str, kind: Spend, count: int) -> None:
        """Composes so many further answers, or one where they do not all fit, so that charging each of them is quick."""
        self._catch_up()
        if self.has_budget and not self.fits(run, kind, count):
            self.fits(run, kind, 1)

    def answered(self, run: str, entry: int, answer: bytes) -> None:
        """Enters the digest of the answer that this entry paid for, before it leaves. Another answer than before is refused."""
        with self._entering():
            self._check_open()
            account = self._runs.get(run)
            paid = next((one for one in reversed(account.paid) if one.entry == entry), None) if account else None
            require(paid is not None, "an answer", "entry", entry, "must be one that this run paid for")
            assert paid is not None
            if paid.answer and paid.answer != answer.hex():
                raise Failed(
                    "{run} gave another answer to what entry {entry} of its ledger paid for",
                    "nothing was sent: put the newest copy of the party's store back, or go on with the next question",
                    run=run,
                    entry=entry,
                )
            if not paid.answer:
                self._enter(ANSWERED, {"run": run, "entry": entry, "digest": answer.hex()})

    def release(self, run: str, why: str, about: Mapping[str, str | int]) -> None:
        """Enters that what this run releases has no bound, and why: once for each run, before its first answer leaves."""
        with self._entering():
            self._check_open()
            self._check_profile(run, about)
            account = self._runs.get(run)
            if account is None or not account.unbounded:
                self._enter(UNBOUNDED, {"run": run, "why": why, "about": dict(about)})

    def end(self, successor: str) -> None:
        """Ends the ledger: its successor continues the account of its documents."""
        with self._entering():
            if not self.ended:
                self._enter(ENDED, {"successor": successor})

    def entries(self) -> Iterator[Entry]:
        self._catch_up()
        return self._file.entries()

    # ---- what others may see of it

    @property
    def head(self) -> tuple[int, bytes]:
        """The number of entries, and the digest that commits to all of them."""
        self._catch_up()
        return self._file.number, self._file.head

    def links(self, since: int, most: int = MOST) -> tuple[bytes, ...]:
        """Digests of later contents, from which `follow` computes a later head out of the head at `since`."""
        self._catch_up()
        return self._file.digests(since, most)

    def head_at(self, number: int) -> bytes | None:
        self._catch_up()
        return self._file.head_at(number)

    def witness(self, number: int, head: bytes, signatures: Mapping[str, bytes]) -> None:
        """Stores the signatures of peers on this head. The caller has verified them."""
        self.check_against(number, head)
        self._file.keep_witnesses(number, head, signatures)

    def witnessed(self) -> int:
        """How many peers countersigned the present head."""
        present = self.head
        return sum((number, head) == present for _, number, head, _ in self._file.witnesses())

    def last_witnessed(self) -> int:
        """The latest entry whose head peers countersigned; 0 if there is none."""
        return max((number for _, number, _, _ in self._file.witnesses()), default=0)

    def check_seen(self, seen: SeenHead) -> None:
        """Refuses a ledger that lacks entries which somebody saw, or has other entries in their place."""
        self._catch_up()
        if seen.ledger not in (b"", self.identity):
            raise LedgerReplaced(self.owner, seen.who)
        self.check_against(seen.number, seen.head, seen.who)

    def check_against(self, number: int, head: bytes, who: str = "others") -> None:
        """Refuses a ledger that lacks the entries which this head commits to."""
        self._catch_up()
        if self._file.head_at(number) != head:
            raise LedgerRolledBack(str(self._file.path), self._file.number, number, who)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _entering(self) -> Iterator[None]:
        """A transaction that knows what every process has entered. At its end all of it is on disk, and counted here."""
        with self._file.appending():
            self._catch_up()
            yield
        self._catch_up()

    def _catch_up(self) -> None:
        """Reads new entries of this or another process, each once. Ctrl-C waits until all are counted."""
        with undisturbed():
            for entry in self._file.news():
                try:
                    self.take(entry)
                except (SecuretmError, KeyError, TypeError, ValueError) as problem:
                    unreadable = f"entry {entry.number} cannot be understood ({type(problem).__name__})"
                    raise tampered(self._file.path, entry.number, unreadable) from problem

    def _enter(self, kind: str, content: Content) -> None:
        self._file.append({"kind": kind, **content, "time": _now()})

    def _admit(self, owner: str, corpus: str, budget: Budget | None) -> None:
        now = self.budget
        if (self.owner, self.corpus) != (owner, corpus):
            raise Mistake(
                "{path} is the ledger of {owner}, not of {asked}",
                "give {asked} a ledger of its own; each party's ledger is private",
                path=str(self.path),
                owner=_whose(self.owner, self.corpus),
                asked=_whose(owner, corpus),
            )
        if budget is None or now == budget:
            return
        if self.has_budget and now.unit is not budget.unit:
            raise units_differ(self.path, now.unit, budget.unit)
        with self._entering():
            before = {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
            more = {"before": before} if self.has_budget else {"orders": orders_for(budget)}
            self._enter(BUDGET, {**more, **_written(budget)})

    def _check_affordable(self, run: str, spend: Spend) -> None:
        kind, count = replace(spend, count=1), spend.count
        require(count > 0, "a charge", "count", count, "must be at least 1")
        if not self.fits(run, kind, count):
            budget, spent, would = self.budget, self.spent().epsilon, self.spent(run, kind, count).epsilon
            raise BudgetExhausted(run, count, budget.unit.value, spent, would, budget.epsilon, budget.delta)

    def _append(self, run: str, spend: Spend, about: Mapping[str, str | int], more: Content | None = None) -> None:
        self._check_open()
        unit = self.budget.unit.value
        if about.get("unit", unit) != unit:
            raise units_differ(self.path, self.budget.unit, str(about["unit"]))
        self._check_profile(run, about)
        what = {"event": as_text(spend.event), "slack": spend.failure_probability, "count": spend.count}
        self._enter(SPENT, {"run": run, **what, "unit": unit, "about": dict(about), **(more or {})})

    def _check_open(self) -> None:
        if successor := self.ended:
            raise Mistake(
                "{path} takes no more entries: {successor} succeeds it",
                "begin a new run over these documents: its ledger begins with all that was spent of them",
                path=str(self.path),
                successor=successor,
            )

    def _check_profile(self, run: str, about: Mapping[str, str | int]) -> None:
        """Refuses another profile than the run began with, because the profile fixes in advance what a run spends."""
        began = self._runs.get(run)
        now = str(about.get("profile", "")), str(about.get("digest", ""))
        if began and (began.profile, began.digest) != now:
            raise Mistake(
                "{run} began under {before}, and would go on under {now}",
                "a run keeps its profile, because that fixes in advance what it spends; begin another run",
                run=run,
                before=_profile(began.profile, began.digest),
                now=_profile(*now),
            )


def units_differ(path: Path, ledger: Unit, other: Unit | str) -> Mistake:
    return Mistake(
        "{path} counts the budget of each {ledger}, and this would spend the budget of each {other}",
        "give each unit a ledger of its own: budgets of different units stand side by side and are never added",
        path=str(path),
        ledger=ledger.value,
        other=other.value if isinstance(other, Unit) else other,
    )


def _written(budget: Budget) -> Content:
    return {"unit": budget.unit.value, "epsilon": budget.epsilon, "delta": budget.delta}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _whose(owner: str, corpus: str) -> str:
    return f"{owner} over {corpus}" if corpus else owner


def _profile(name: str, digest: str) -> str:
    return f"{name} ({digest[:12]})" if digest else name or "no profile"
