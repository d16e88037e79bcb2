"""Ledgers that peers countersign: an older copy, a fresh one and a forged head are found out before anything more is spent."""

from __future__ import annotations

import re
import shutil
import sqlite3
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.composition import affordable
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.ledger import LedgerReplaced
from securetm.accounting.ledger.ledger_file import LedgerRolledBack
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Spend
from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import Failed
from securetm.federation.budget.guard import BudgetGuard
from securetm.federation.budget.witness import MOST_TURNS, UNCONFIRMED, UNPAID, Countersigning, quorum, seen_head_of
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.folder import RunFolder, begin
from securetm.federation.party.failure_log import failures_in
from securetm.federation.party.party import Party
from securetm.federation.refusal_errors import OutOfBudget
from securetm.federation.simulation.simulation import execute
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.private_files import private_file
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import FIVE, texts
from .played import Played, refusals
from .private import PUBLIC, paying_parties, private_plan


class Session:
    """Parties with ledgers, and a coordinator that can leave out, change or repeat what they sign."""

    def __init__(self, plan: Plan, corpora: Mapping[str, Corpus], folder: Path) -> None:
        self.parties = paying_parties(plan, corpora, folder)
        self.played = Played(plan, tuple(corpora))
        self.countersigning = Countersigning(tuple(corpora), self.carried)
        self.answered = 0  # questions; each has the next number
        for name in self.parties:
            self.accepted(name, self.played.invite())
            self.accepted(name, self.played.adopt(PUBLIC))

    def accepted(self, name: str, body: wire.Body) -> wire.Accepted:
        outcome = self.played.send(self.parties[name], body)
        if isinstance(outcome, wire.Refusal):
            raise PartyRefused(name, outcome.name)
        self.heads[name] = outcome.head
        return outcome

    @property
    def heads(self) -> dict[str, bytes]:
        return self.countersigning.heads

    def carried(self, bodies: Mapping[str, wire.Body]) -> dict[str, wire.Accepted]:
        return {name: self.accepted(name, body) for name, body in bodies.items()}

    def signed_of(self, owner: str) -> tuple[bytes, ...]:
        """What all others sign of that ledger, where an honest coordinator carries it."""
        return self.countersigning.gather()[owner]

    def shown(self, witness: str, owner: str, *links: bytes) -> wire.Outcome:
        """What one party says to another's present head and these links."""
        return self.played.send(self.parties[witness], wire.Witness((self.heads[owner],), links))

    def ask(self, name: str, witnesses: tuple[bytes, ...]) -> wire.Outcome:
        asked = self.played.ask("train", self.played.fresh(), number=self.answered)
        outcome = self.played.send(self.parties[name], replace(asked, witnesses=witnesses))
        if isinstance(outcome, wire.Accepted):
            self.heads[name], self.answered = outcome.head, self.answered + 1
        return outcome

    def party(self, name: str) -> Party:
        return self.parties[name]

    def close(self) -> None:
        for party in self.parties.values():
            party.close()


@pytest.fixture
def session(five: Mapping[str, Corpus], tmp_path: Path) -> Session:
    return Session(private_plan(tmp_path, "dp-local"), five, tmp_path)


def test_a_party_spends_only_where_the_others_signed(session: Session) -> None:
    assert session.ask("north", ()) == wire.Refusal("NotWitnessed")
    signed = session.signed_of("north")
    assert session.ask("north", signed[:1]) == wire.Refusal("NotWitnessed")
    assert isinstance(session.ask("north", signed), wire.Accepted)
    assert session.ask("north", signed) == wire.Refusal("NotWitnessed")  # they signed where it stood before
    assert isinstance(session.ask("north", session.signed_of("north")), wire.Accepted)
    session.close()


def test_nobody_else_can_sign_for_a_party(session: Session) -> None:
    signed = session.signed_of("north")
    forged = tuple(one[:-1] + bytes([one[-1] ^ 1]) for one in signed)
    assert session.ask("north", forged) == wire.Refusal("BadSignature")
    assert session.ask("north", (signed[0],) * 4) == wire.Refusal("NotWitnessed")  # one party is one signature
    assert session.ask("north", session.signed_of("south")) in (wire.Refusal("Malformed"), wire.Refusal("BadSignature"))
    for short in (b"", b"abc", b"short"):
        assert session.ask("north", (short,)) == wire.Refusal("Malformed")
    assert failures_in(session.party("north").store.folder) == []  # a malformed message is no failure of the party's own
    session.close()


@pytest.mark.slow
def test_a_party_whose_ledger_grows_without_end_keeps_nobody_busy_without_end(session: Session) -> None:
    """It leads the others farther in each turn, and there is always more. They go on when they are asked the next time."""
    session.signed_of("north")
    carried, turns = session.carried, []

    def growing(bodies: Mapping[str, wire.Body]) -> dict[str, wire.Accepted]:
        if isinstance(bodies.get("north"), wire.Links):
            turns.append(1)
            assert len(turns) <= MOST_TURNS
            spend_elsewhere(session, "north", 1)
        told = carried(bodies)
        spend_elsewhere(session, "north", 1)
        session.accepted("north", wire.Witness(()))  # it announces a longer head than the one it led to
        return told

    spend_elsewhere(session, "north", 1)
    session.countersigning.carry = growing
    session.accepted("north", wire.Witness(()))
    signed = session.signed_of("north")
    assert len(turns) == MOST_TURNS
    assert min(seen_head_of(one).count for one in signed) >= MOST_TURNS
    session.close()


def test_what_was_signed_before_another_invitation_counts_no_more(session: Session) -> None:
    """Also under the same session id: else a coordinator could bring back what others signed of an earlier copy."""
    before = session.signed_of("north")
    session.accepted("north", session.played.invite())
    session.accepted("north", session.played.adopt(PUBLIC))
    assert session.ask("north", before) == wire.Refusal("StaleSignature")
    assert isinstance(session.ask("north", session.signed_of("north")), wire.Accepted)
    session.close()


def test_what_version_2_remembered_of_a_ledger_still_stands(session: Session) -> None:
    """Memories have no signature in them, so that another protocol makes no party forget how long a ledger was."""
    others, ledger = session.party("south").others, session.party("north").ledger
    assert others is not None
    assert ledger is not None
    others.put("ledger of north", struct.pack(">IQ32s32s", 0, 9, ledger.identity, b"h" * 32))
    signed = session.signed_of("north")
    assert max(seen_head_of(one).count for one in signed) == 9
    assert session.ask("north", signed) == wire.Refusal("Failed")
    assert failures_in(session.party("north").store.folder)[-1].name == LedgerRolledBack.__name__
    session.close()


def test_a_party_out_of_a_copy_signs_nothing_until_others_have_signed_its_own_ledger(session: Session) -> None:
    """The coordinator brings it what they signed, and then it signs, too."""
    for name in ("south", "west", "east"):
        others = session.party(name).others
        assert others is not None
        others.put(UNCONFIRMED, b"1")
    assert len(session.signed_of("north")) == 1  # two are not enough for anybody
    for name in ("west", "east"):
        others = session.party(name).others
        assert others is not None
        others.drop(UNCONFIRMED)
    assert len(session.signed_of("north")) == 4
    assert isinstance(session.ask("south", session.signed_of("south")), wire.Accepted)
    session.close()


def test_a_party_out_of_a_copy_pays_for_an_answer_that_may_be_lost(session: Session) -> None:
    others, ledger = session.party("south").others, session.party("south").ledger
    assert others is not None
    assert ledger is not None
    others.put(UNPAID, b"1")
    for paid in (2, 3):
        assert isinstance(session.ask("south", session.signed_of("south")), wire.Accepted)
        assert sum(spend.count for spend in ledger.spends("a run")) == paid
    session.close()


def test_a_forged_head_is_not_countersigned(session: Session) -> None:
    head = session.heads["north"]
    changed = head[:5] + bytes([head[5] ^ 1]) + head[6:]
    assert session.played.send(session.party("south"), wire.Witness((changed,))) == wire.Refusal("BadSignature")
    assert session.played.send(session.party("south"), wire.Witness((b"",))) == wire.Refusal("Malformed")
    assert refusals(session.party("south"))[-1][0] == "Malformed"
    session.close()


def count(outcome: wire.Outcome) -> int:
    """At which entry the party stands, by what it signed."""
    assert isinstance(outcome, wire.Accepted)
    return seen_head_of(outcome.parcels[0]).count


def spend_elsewhere(session: Session, name: str, times: int) -> None:
    """In another run than this one's."""
    ledger = session.party(name).ledger
    assert ledger is not None
    for _ in range(times):
        ledger.record("elsewhere", Spend(GaussianDpEvent(100.0)), {"profile": "dp-local"})


def test_a_longer_ledger_is_countersigned_where_links_lead_to_it(session: Session) -> None:
    assert isinstance(session.ask("north", session.signed_of("north")), wire.Accepted)
    statements = session.signed_of("north")
    assert {seen_head_of(one).count for one in statements} == {3}  # opened, paid, answered
    spend_elsewhere(session, "north", 2)
    led = session.accepted("north", wire.Links(statements))
    (_, links), way = led.parcels, led.parcels[1]
    assert len(links) == 2 * wire.LINK
    assert count(session.shown("south", "north")) == 3  # what nobody proves is not signed, and says where it stands
    for wrong in (way[: wire.LINK], way[::-1], way + way[: wire.LINK], bytes(2 * wire.LINK)):
        assert session.shown("south", "north", wrong) == wire.Refusal("LedgerForked")
    for wrong in (way[:-1], bytes((wire.MOST_LINKS + 1) * wire.LINK)):
        assert session.shown("south", "north", wrong) == wire.Refusal("Malformed")
    assert session.shown("south", "north", way, way) == wire.Refusal("Malformed")
    assert count(session.shown("south", "north")) == 3
    assert count(session.shown("south", "north", way)) == 5
    assert session.played.send(session.party("south"), wire.Links((statements[0],))) == wire.Refusal("Malformed")
    session.close()


def test_a_way_too_long_for_one_message_is_gone_in_parts(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("securetm.federation.budget.signing.MOST_LINKS", 3)
    monkeypatch.setattr("securetm.federation.wire.wire.MOST_LINKED", 4 * wire.LINK)  # of two ledgers only one fits
    for name in ("north", "south"):
        session.signed_of(name)
        spend_elsewhere(session, name, 7)
    for name in ("north", "south"):
        session.accepted(name, session.played.invite())
    for name in ("north", "south"):
        assert [seen_head_of(one).count for one in session.signed_of(name)] == [8, 8, 8, 8]
    session.close()


def put_back_and_longer(five: Mapping[str, Corpus], folder: Path) -> Session:
    """North's ledger as it was when others saw less of it, with other entries since than those that they saw."""
    session = Session(private_plan(folder, "dp-local"), five, folder)
    path = folder / "north.ledger"
    private_file(folder / "copy")
    with sqlite3.connect(path) as opened, sqlite3.connect(folder / "copy") as copy:
        opened.backup(copy)
    for _ in range(2):  # they saw five entries
        assert isinstance(session.ask("north", session.signed_of("north")), wire.Accepted)
    session.signed_of("north")
    session.close()
    for beside in folder.glob("north.ledger*"):
        beside.unlink()
    (folder / "copy").rename(path)
    budget = session.played.profile.budget
    assert budget is not None
    with Ledger.open(path, "north", budget) as elsewhere:
        for _ in range(6):
            elsewhere.charge("elsewhere", Spend(GaussianDpEvent(100.0)), {"profile": "dp-local"})
    return Session(private_plan(folder, "dp-local"), five, folder)


def test_a_ledger_that_was_put_back_and_spent_from_elsewhere_is_not_countersigned(
    five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """It is longer than what the others saw, and no continuation of it."""
    session = put_back_and_longer(five, tmp_path)
    with pytest.raises(PartyRefused, match="Failed"):  # and no details leave it
        session.ask("north", session.signed_of("north"))
    (found,) = failures_in(session.party("north").store.folder)
    assert found.name == LedgerRolledBack.__name__
    assert re.search(r"north.ledger holds 7 entries, and not the history of 5 entries that others saw", found.reason)
    session.close()


def test_no_links_make_a_fork_a_continuation(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Where the coordinator helps, and gives the owner nothing to find out by."""
    session = put_back_and_longer(five, tmp_path)
    north = session.party("north").ledger
    assert north is not None
    for since in range(8):
        way = b"".join(north.links(since))
        assert session.shown("south", "north", way) == (
            wire.Refusal("LedgerForked") if way else session.shown("south", "north")
        )
    assert refusals(session.party("south"))[-1] == (
        "LedgerForked",
        "the ledger of north with 7 entries does not continue the one that was seen with 5",
    )
    told = session.shown("south", "north")
    assert count(told) == 5
    refused = session.ask("north", told.parcels)  # type: ignore[union-attr]
    assert refused == wire.Refusal("Failed")  # an honest owner finds it out by what they can sign
    assert failures_in(session.party("north").store.folder)[-1].name == LedgerRolledBack.__name__
    session.close()


def told_to(session: Session, peers: str) -> list[bool]:
    """Whether the first party answers, where the coordinator shows its heads to these peers and to nobody else."""
    countersigning = Countersigning(("a", *peers), session.carried, {"a": session.heads["a"]})
    answered = []
    for _ in range(2):
        answered.append(isinstance(session.ask("a", countersigning.gather()["a"]), wire.Accepted))
        countersigning.heads["a"] = session.heads["a"]
    return answered


@pytest.mark.parametrize(("first", "second"), quick([("bcd", "efg"), ("bcde", "defg"), ("bcde", "efg")], ("bcde", "efg")))
def test_no_two_sets_of_peers_sign_two_histories_of_one_ledger(first: str, second: str, tmp_path: Path) -> None:
    """The coordinator chooses who sees which heads, and shows the old copy to those who saw nothing of the newer one."""
    plan, few = private_plan(tmp_path, "dp-local"), next(iter(FIVE.values()))
    seven = {name: Corpus.from_strings(texts(few, 40, seed), name=name) for seed, name in enumerate("abcdefg")}
    session, path = Session(plan, seven, tmp_path), tmp_path / "a.ledger"
    session.close()
    copied = path.read_bytes()
    session = Session(plan, seven, tmp_path)
    assert told_to(session, first) == [len(first) > 3] * 2
    session.close()
    for beside in tmp_path.glob("a.ledger*"):
        beside.unlink()
    private_file(path)
    path.write_bytes(copied)
    session = Session(plan, seven, tmp_path)
    assert not any(told_to_or_found_out(session, second))
    session.close()


def told_to_or_found_out(session: Session, peers: str) -> list[bool]:
    """As above, or its owner finds out by itself that an old copy was put back."""
    try:
        return told_to(session, peers)
    except PartyRefused:
        return [False]


@pytest.mark.parametrize("others", range(1, 40))
def test_two_quorums_share_a_party_that_does_not_help(others: int) -> None:
    """Unless all others help: then there is none."""
    for colluding in range(others):
        needed = quorum(others, colluding)
        assert needed <= others
        assert 2 * needed - others > colluding
        assert 2 * (needed - 1) - others <= colluding  # and no more than that takes
    assert quorum(others, others) == quorum(others, others + 3) == others


def finished(folder: Path, plan: Plan, corpora: Mapping[str, Corpus]) -> RunFolder:
    made = begin(folder, plan, corpora, ledgers=folder.parent / "ledgers")
    execute(made, Unwatched(), comparison=False)
    return made


@pytest.mark.parametrize(
    ("what", "error"),
    quick([("an older copy", LedgerRolledBack), ("a fresh one", LedgerReplaced)], ("an older copy", LedgerRolledBack)),
)
def test_a_ledger_that_was_put_back_is_found_out_in_the_next_run(
    what: str, error: type[Exception], five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = private_plan(tmp_path, "dp-local", training__rounds=2)
    first = finished(tmp_path / "one", plan, five)
    ledger = first.ledger("north")
    for beside in ledger.parent.glob(ledger.name + "-*"):
        beside.unlink()
    shutil.copy(ledger, tmp_path / "old")
    finished(tmp_path / "two", plan, five)
    for beside in ledger.parent.glob(ledger.name + "*"):
        beside.unlink()
    if what == "an older copy":
        shutil.copy(tmp_path / "old", ledger)
    else:
        budget = agree(plan).profile.budget
        assert budget is not None
        Ledger.open(ledger, "north", budget).close()
    with pytest.raises(Failed, match=f"north logged a failure of its own: {error.__name__}"):
        finished(tmp_path / "three", plan, five)


def test_what_is_signed_says_nothing_of_documents(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Two parties with other documents sign the same of a ledger, but for keys and the times in their own."""
    plan = private_plan(tmp_path, "dp-local")
    one = Session(plan, five, tmp_path / "a")
    fewer = {name: corpus.select(np.arange(len(corpus) - 20)) for name, corpus in five.items()}
    two = Session(plan, fewer, tmp_path / "b")
    assert [len(part) for part in one.signed_of("north")] == [len(part) for part in two.signed_of("north")]
    assert one.party("north").ledger.head[0] == two.party("north").ledger.head[0]  # type: ignore[union-attr]
    one.close()
    two.close()


def test_a_run_has_its_own_budget_whatever_its_ledger_still_allows(tmp_path: Path) -> None:
    """Of its delta as much as a run has that may have others beside it, and of its answers not one more."""
    spend, own = Spend(GaussianDpEvent(60.0)), Budget(Unit.DOCUMENT, 1.0, 1e-5)
    with Ledger.open(tmp_path / "north.ledger", "north", replace(own, epsilon=50.0)) as ledger:
        guard = BudgetGuard(ledger, SimpleNamespace(check_witnessed=lambda: None, may_have_lost=False), "run", own)  # type: ignore[arg-type]
        few = affordable((), spend, own.epsilon, ALONE * own.delta, 1_000)
        assert 1 < few < affordable((), spend, own.epsilon, own.delta, 1_000)
        for _ in range(few):
            guard.charge(spend, {"unit": "document", "question": "train"})
        with pytest.raises(OutOfBudget, match="of its profile"):
            guard.charge(spend, {"unit": "document", "question": "train"})
