"""Runs under a privacy budget: what leaves a party, what is refused, what is spent, and when training ends."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.ledger import Ledger
from securetm.accounting.spends import Spend
from securetm.aggregation.vectors import unpack_vector
from securetm.contracts import Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Failed, NoPersons
from securetm.federation.folder import RunFolder, begin, reopen
from securetm.federation.party_store import PartyStore
from securetm.federation.simulation.simulation import execute
from securetm.federation.transcript import Transcript
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import FIVE, small_plan, texts
from .killed_run import ended
from .played import Played
from .private import PUBLIC, paid, paying_parties, private_plan, settle

PRIVATE = ("dp-local", "dp-distributed", "dp-central")


def ran(folder: Path, profile: str, corpora: Mapping[str, Corpus], *, record: bool = False, **more: Any) -> Any:
    plan = private_plan(folder, profile, **more)
    made = begin(folder / "run", plan, corpora, with_content=record, ledgers=folder / "ledgers")
    return made, execute(made, Unwatched(), comparison=False)


# ---- what leaves a party -------------------------------------------------------------------------------------------


def shape_of(folder: RunFolder) -> list[tuple[Any, ...]]:
    """Every message without its content: who said how much to whom, in order."""
    transcript = Transcript(folder.path / "transcript")
    rows = transcript.rows("SELECT serial, channel, sender, receiver, bytes FROM messages ORDER BY at")
    transcript.close()
    return rows


@pytest.mark.parametrize("profile", quick(PRIVATE, "dp-distributed"))
def test_the_form_of_a_run_says_nothing_of_the_documents(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Other documents, and more of them: the same messages of the same lengths in the same order."""
    other = {name: Corpus.from_strings(texts(FIVE["south"], 130, 99), name=name) for name in five}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, _ = ran(tmp_path / "a", profile, five, training__rounds=4)
    two, _ = ran(tmp_path / "b", profile, other, training__rounds=4)
    assert shape_of(one) == shape_of(two)


def test_nothing_but_noised_answers_and_public_facts_leaves_a_party(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """An auditor reads every byte: consent, ledger heads and signatures of promised sizes, and vectors full of noise."""
    folder, _ = ran(tmp_path, "dp-local", five, record=True, training__rounds=6)
    played = Played(folder.agreement.plan, folder.members)
    played.adopt(PUBLIC)
    terms = played.terms("train", played.fresh())
    transcript = Transcript(folder.path / "transcript")
    rows = transcript.rows("SELECT channel, sender, receiver, content FROM messages ORDER BY at")
    transcript.close()
    pending: dict[str, wire.Body] = {}
    answers = []
    for channel, sender, receiver, content in rows:
        if channel == "request":
            pending[receiver] = wire.unpack_request(content)[1]
        elif channel == "answer":
            answers += said(pending.pop(sender), wire.unpack_reply(content, sender)[1], content, terms, sender)
    assert len(answers) == 6 * len(five)
    for vector in answers:
        assert np.issubdtype(vector.dtype, np.integer)
        assert vector.std() > 0.9 * terms.deviation
        assert np.mean(vector == 0) < 0.01  # a coordinate of an exact gradient is often nought


def said(request: wire.Body, outcome: wire.Outcome, content: bytes, terms: Any, sender: str) -> list[Any]:
    """The answer in a reply, after everything else in it was found to be of the one form that it may have."""
    assert isinstance(outcome, wire.Accepted)
    assert (
        len(outcome.head) == 4 + 8 + 32 + 32 + 16 + 16 + 64
    )  # whose ledger, how long, which, where; nonce, data set, signature
    if isinstance(request, wire.Witness):
        assert [len(parcel) for parcel in outcome.parcels] == [4 + 4 + 8 + 32 + 32 + 16 + 64] * len(request.heads)
        return []
    if isinstance(request, wire.Links):  # digests of entries, which begin with 16 random bytes
        head, links = outcome.parcels
        assert (len(head), len(links) % wire.LINK) == (4 + 8 + 32 + 32 + 16 + 16 + 64, 0)
        return []
    if not isinstance(request, wire.Ask):
        assert outcome.parcels == ()
        return []
    assert request.question == "train"
    (vector,) = outcome.parcels
    assert wire.pack_reply(wire_session(content), outcome) == content  # there is no field that nobody looked at
    blocks = unpack_vector(vector, terms, sender)
    return [np.concatenate([block.ravel() for block in blocks.values()])]


def wire_session(content: bytes) -> bytes:
    return wire.unpack_reply(content, "somebody")[0]


@pytest.mark.parametrize("question", ["coherence", "held_out", "frequencies", "words", "joint"])
def test_what_no_budget_was_made_for_is_refused_by_name(question: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = private_plan(tmp_path, "dp-local")
    party = paying_parties(plan, five, tmp_path)["north"]
    open_plan = small_plan(vocabulary__source="union" if question in ("words", "frequencies") else "")
    played, free = Played(plan, tuple(five)), Played(open_plan, tuple(five))
    settle(played, party)
    free.adopt(PUBLIC)
    state = {"top": np.arange(6).reshape(2, 3)} if question == "coherence" else free.fresh() if question == "held_out" else {}
    terms_free = wire.Ask(question, 0, 1, tuple(five), bytes(32), state)
    before = party.ledger.head if party.ledger else None
    assert played.send(party, terms_free) in (wire.Refusal("NotPaidFor"), wire.Refusal("UnknownQuestion"))
    assert party.ledger is not None
    assert party.ledger.head == before
    party.close()


def test_a_hostile_model_cannot_make_a_party_say_more_than_noise(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Weights at which every gradient overflows: a refusal would depend on the documents, so there is none."""
    folder, _ = ran(tmp_path, "dp-local", five, training__rounds=1)
    plan = folder.agreement.plan
    parties = paying_parties(plan, five, tmp_path / "again")
    played = Played(plan, tuple(five))
    heads = {}
    for name, party in parties.items():
        outcome = played.send(party, played.invite())
        assert isinstance(outcome, wire.Accepted)
        heads[name] = outcome.head
        assert isinstance(played.send(party, played.adopt(PUBLIC)), wire.Accepted)
    signed = []
    for name, party in parties.items():
        if name != "north":
            outcome = played.send(party, wire.Witness((heads["north"],)))
            assert isinstance(outcome, wire.Accepted)
            signed += outcome.parcels
    hostile = {n: np.full_like(a, 1e38) if n == "weights" else a for n, a in played.fresh().items()}
    ask = replace(played.ask("train", hostile), witnesses=tuple(signed))
    outcome = played.send(parties["north"], ask)
    assert isinstance(outcome, wire.Accepted)
    terms = played.terms("train", hostile)
    vector = np.concatenate([b.ravel() for b in unpack_vector(outcome.parcels[0], terms, "north").values()])
    assert np.abs(vector).max() < 12 * terms.deviation + 60 * terms.l2
    for party in parties.values():
        party.close()


# ---- what is spent -------------------------------------------------------------------------------------------------


SPENDING = {"privacy__epsilon": 3.0, "privacy__noise": 0.8}


@pytest.fixture(scope="module")
def spending(five: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run that spent the budget of these documents: its folder, and its result."""
    return ran(tmp_path_factory.mktemp("spent"), "dp-central", five, **SPENDING, training__rounds=500)


@pytest.fixture
def spent(spending: Any) -> Path:
    """The ledgers of these documents after it."""
    ledgers: Path = spending[0].ledger("north").parents[1]
    return ledgers


def test_training_stops_before_the_round_that_would_exceed_the_budget(spending: Any) -> None:
    folder, result = spending
    assert result["stopped"] == "budget"
    assert 5 < result["rounds"] < 500
    assert all(2.7 < spent["epsilon"] <= 3.0 for spent in result["spent"])
    assert len(result["topics"]) == 3  # the model so far is kept
    assert len(paid(folder.ledger("north"))) == result["rounds"]


def test_the_next_run_over_the_same_documents_finds_the_budget_spent(
    spent: Path, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = private_plan(tmp_path, "dp-local", **SPENDING)
    result = execute(begin(tmp_path / "another", plan, five, ledgers=spent), Unwatched(), comparison=False)
    assert (result["rounds"], result["stopped"]) == (0, "budget")
    assert all(one["epsilon"] == 0 and 2.7 < one["all_runs"] <= 3.0 for one in result["spent"])


def test_a_later_plan_cannot_raise_the_budget_of_a_party(spent: Path, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = private_plan(tmp_path, "dp-local", **{**SPENDING, "privacy__epsilon": 6.0})
    result = execute(begin(tmp_path / "another", plan, five, ledgers=spent), Unwatched(), comparison=False)
    assert result["rounds"] == 0
    assert all(one["all_runs"] <= 3.0 for one in result["spent"])


def test_a_party_does_not_keep_how_many_took_part_and_a_folder_of_the_same_name_is_another_run(
    five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    folder, _ = ran(tmp_path, "dp-central", five, training__rounds=2)
    store = PartyStore(folder.party("north"))
    assert store.rows("SELECT documents, loss FROM rounds WHERE question = 'train'") == [(0, None), (0, None)]
    store.close()
    shutil.rmtree(folder.path)
    again, _ = ran(tmp_path, "dp-central", five, training__rounds=2)
    with Ledger.read(again.ledger("north")) as ledger:
        assert [run.answers.total() for run in ledger.runs()] == [2, 2]


@pytest.mark.parametrize("profile", ["dp-local", "dp-central"])
def test_words_are_not_asked_after_training_began(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Composition was worked out for an order that is fixed in advance."""
    plan = small_plan(profile=profile, training__rounds=2)
    party = paying_parties(plan, five, tmp_path)["north"]
    spend = Spend(GaussianDpEvent(100.0))
    who = {"profile": plan.profile, "digest": party.agreement.profile.digest.hex(), "unit": "document"}
    assert party.ledger is not None
    party.ledger.record(party.run, spend, {**who, "question": "train", "serial": 1})
    played = Played(plan, tuple(five))
    assert isinstance(played.send(party, played.invite()), wire.Accepted)
    assert played.send(party, played.ask("joint", {}, serial=2)) == wire.Refusal("OutOfTurn")
    party.close()


def test_sums_of_words_are_asked_three_times_at_most(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """More would be paid for as any other; but the budget of the training was made for three."""
    plan = small_plan(profile="dp-central", training__rounds=2)
    party = paying_parties(plan, five, tmp_path)["north"]
    played = Played(plan, tuple(five))
    assert isinstance(played.send(party, played.invite()), wire.Accepted)
    assert played.send(party, played.ask("joint", {}, number=3, serial=2)) == wire.Refusal("AskedTooOften")
    party.close()


def test_a_budget_takes_no_gpu(tmp_path: Path) -> None:
    assert private_plan(tmp_path, "dp-local").model.settings["device"] == "cpu"
    with pytest.raises(BadSetting):
        private_plan(tmp_path, "dp-local", model__device="cuda")


@pytest.mark.slow
def test_where_no_budget_is_left_for_words_the_run_says_so(spent: Path, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(profile="dp-local", privacy__epsilon=3.0)
    folder = begin(tmp_path / "another", plan, five, ledgers=spent)
    with pytest.raises(Failed, match="allows no other answer of") as told:
        execute(folder, Unwatched(), comparison=False)
    assert str(folder.ledger("north")) in str(told.value)
    assert "--ledgers" in told.value.advice()


@pytest.mark.parametrize("changed", [{"noise": 0.1}, {"rate": 0.9}, {"epsilon": 80.0}, {"unit": "person"}])
def test_a_party_takes_part_under_no_other_numbers_than_its_own(
    changed: Mapping[str, Any], five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = private_plan(tmp_path, "dp-local", privacy__epsilon=3.0, privacy__noise=1.0)
    party = paying_parties(plan, five, tmp_path)["north"]
    other = replace(plan, privacy=replace(plan.privacy, **changed))
    played = Played(other, tuple(five))
    assert played.profile.digest != agree(plan).profile.digest
    assert played.send(party, played.invite()) == wire.Refusal("WrongAgreement")
    party.close()


@pytest.mark.parametrize("moments", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_killed_run_does_not_forget_what_it_spent(moments: int, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    stored = tmp_path / "corpora"
    stored.mkdir()
    for name, corpus in five.items():
        corpus.save(stored / f"{name}.npz")
    plan = private_plan(tmp_path, "dp-local", privacy__epsilon=3.0, privacy__noise=0.9, training__rounds=8)
    settings = json.dumps({name: value for name, value in plan.tables().items() if name != "tokeniser"})
    assert ended(tmp_path / "run", "begin", "round", moments, str(stored), settings) == -signal.SIGKILL
    folder = reopen(tmp_path / "run")
    before = {name: len(paid(folder.ledger(name))) for name in folder.members}
    assert all(count >= moments for count in before.values())
    result = execute(folder, Unwatched(), comparison=False)
    after = {name: len(paid(folder.ledger(name))) for name in folder.members}
    assert all(after[name] - before[name] >= result["rounds"] - moments for name in after)
    assert all(spent["epsilon"] <= 3.0 for spent in result["spent"])


# ---- who is protected ----------------------------------------------------------------------------------------------


def test_persons_are_the_unit_where_the_documents_name_them(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    persons = {name: corpus.replace(persons=np.arange(len(corpus)) // 3) for name, corpus in five.items()}
    folder, result = ran(tmp_path, "dp-local", persons, training__rounds=3)
    assert folder.agreement.unit is Unit.PERSON
    assert {spent["unit"] for spent in result["spent"]} == {"person"}


def test_a_party_whose_documents_name_nobody_cannot_promise_persons_anything(
    five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = private_plan(tmp_path, "dp-local", privacy__unit="person")
    with pytest.raises(NoPersons):
        execute(begin(tmp_path / "run", plan, five), Unwatched(), comparison=False)


def test_words_are_named_only_where_many_documents_use_them(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Six hundred documents of one party share its words; one of them has a word that nobody else uses."""
    said = [*texts(FIVE["south"], 600, 1), "court zyzzyva judge"]
    many = {name: Corpus.from_strings(said, name=name) for name in five}
    plan = small_plan(profile="dp-distributed", training__rounds=2)
    folder = begin(tmp_path / "run", plan, many)
    result = execute(folder, Unwatched(), comparison=False)
    words = (folder.coordinator / "vocabulary.txt").read_text().split("\n")
    assert "court" in words
    assert "zyzzyva" not in words
    assert [one["about"]["question"] for one in paid(folder.ledger("north"))] == ["joint", "joint", "joint", "train", "train"]
    assert result["rounds"] == 2
