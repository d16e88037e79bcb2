"""Runs under a privacy budget: what leaves a party, what is refused, what is spent and entered, and when training ends."""

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
import torch
from dp_accounting import GaussianDpEvent

from securetm import federate
from securetm.accounting.composition import total
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.all_runs import all_runs
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Spend
from securetm.aggregation.vectors import unpack_vector
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Failed, Mistake, NoPersons
from securetm.federation.budget.prices import bill_of
from securetm.federation.folder import RunFolder, begin, reopen
from securetm.federation.party.party import Party
from securetm.federation.party_store import PartyStore
from securetm.federation.questions import TRAIN, OtherUnit
from securetm.federation.simulation.simulation import execute
from securetm.federation.transcript import Transcript
from securetm.federation.wire import wire
from securetm.models.neural.torch_kernels import TorchKernels
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from ..cli.conftest import securetm
from ..quick_part import quick
from .conftest import FIVE, small_plan, texts
from .killed_run import ended
from .played import Played, make_party
from .private import PUBLIC, paid, paying_parties, private_plan, public_words, settle

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


def test_a_party_whose_documents_name_nobody_cannot_promise_persons_anything(
    five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = private_plan(tmp_path, "dp-local", privacy__unit="person")
    with pytest.raises(NoPersons):
        execute(begin(tmp_path / "run", plan, five), Unwatched(), comparison=False)


# ---- what a budget covers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [{"model__local_epochs": 1}, {"model": {"name": "fednmf"}}])
@pytest.mark.parametrize("unit", ["document", "person"])
def test_a_row_for_each_party_is_no_bound_for_a_document(unit: str, model: dict[str, Any], tmp_path: Path) -> None:
    """Without one document the party's row is another one, and two rows of length r lie up to 2 r apart."""
    plan = private_plan(tmp_path, "dp-local", privacy__unit=unit, **model)
    with pytest.raises(OtherUnit, match=f"for each party, and the budget protects each {unit}"):
        bill_of(agree(plan), 5)


@pytest.mark.slow
def test_a_run_says_its_epsilon_at_its_own_delta(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """The ledger was opened by a run with a larger delta, at which the same answers have a smaller epsilon."""
    first = private_plan(tmp_path, "dp-local", privacy__noise=8.0, privacy__delta=1e-4, training__rounds=1)
    execute(begin(tmp_path / "first", first, five, ledgers=tmp_path / "ledgers"), Unwatched(), comparison=False)
    plan = replace(first, privacy=replace(first.privacy, delta=1e-9), training=replace(first.training, rounds=2))
    folder = begin(tmp_path / "second", plan, five, ledgers=tmp_path / "ledgers")
    said = execute(folder, Unwatched(), comparison=False)["spent"][0]
    with Ledger.read(folder.ledger("north")) as ledger:
        spends = ledger.spends(folder.name)
    assert said["delta"] == 1e-9
    assert said["epsilon"] == pytest.approx(total(spends, ALONE * 1e-9).epsilon)
    assert said["epsilon"] > 1.2 * total(spends, ALONE * 1e-4).epsilon


@pytest.mark.parametrize("documents", [99, 100])
def test_no_vocabulary_makes_a_party_say_how_many_documents_use_it(
    documents: int, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """A coordinator that names a few words would otherwise learn exactly whether enough documents use one of them."""
    rare = [f"zyzzyva quagga {text}" for text in texts(FIVE["north"], 2, 3)]
    own = Corpus.from_strings([*rare, *texts(FIVE["north"], documents, 4)], name="north")
    plan = small_plan(profile="dp-distributed", privacy__noise=1.0)
    party = paying_parties(plan, {**five, "north": own}, tmp_path)["north"]
    played = Played(plan, tuple(five))
    assert isinstance(played.send(party, played.invite()), wire.Accepted)
    assert isinstance(played.send(party, wire.Adopt(b"quagga\nzyzzyva")), wire.Accepted)
    party.close()


def test_without_a_document_its_persons_others_stay_where_they_were(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Where documents are protected one by one, none may decide on which side of the split another one lies."""
    own = five["north"].replace(persons=np.zeros(len(five["north"]), np.int64))
    plan = private_plan(tmp_path, "dp-local", privacy__unit="document")
    for place in range(3):
        kept = own.select(np.delete(np.arange(len(own)), place))
        party = paying_parties(plan, {"north": kept, "south": five["south"]}, tmp_path / str(place))["north"]
        party.documents.adopt(own.vocabulary, agree(plan))
        assert 0.6 * len(own) < len(party.documents.for_question("train")) < 0.95 * len(own)
        party.close()


# ---- releases without a bound ----------------------------------------------------------------------------------------------


def run(five: Mapping[str, Corpus], folder: Path, name: str, profile: str, ledgers: Path | None) -> Mapping[str, object]:
    settings = {
        "profile": profile,
        "model.name": "lda",
        "model.n_topics": 3,
        "training.rounds": 2,
        "vocabulary.source": "file",
        "vocabulary.file": public_words(folder),
        "origins.vocabulary": "words that the tests made up",
        **({"privacy.noise": 8.0} if profile == "dp-distributed" else {}),  # so that a second run fits
    }
    return federate(five, folder / name, settings, ledgers=ledgers, comparison=False)


def test_after_a_run_without_a_bound_all_runs_are_unbounded_because_of_it(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    ledgers = tmp_path / "ledgers"
    first = run(five, tmp_path, "first", "dp-distributed", ledgers)["spent"][0]  # type: ignore[index]
    assert first["all_runs"] > 0
    assert first["unbounded_because"] is None
    free = run(five, tmp_path, "free", "masked", ledgers)["spent"][0]  # type: ignore[index]
    assert (free["epsilon"], free["all_runs"]) == (None, None)
    last = run(five, tmp_path, "last", "dp-distributed", ledgers)["spent"][0]  # type: ignore[index]
    assert 0 < last["epsilon"] <= last["budget"]  # what this run adds is bounded
    for spent in (free, last):
        assert spent["all_runs"] is None
        assert spent["unbounded_because"].startswith("run free ")
        assert "profile 'masked' has no bound" in spent["unbounded_because"]
    shown = securetm("budget", "ledger", last["ledger"], "--json")
    assert shown.code == 0
    assert shown.json["epsilon"] is None
    assert shown.json["unbounded_because"] == last["unbounded_because"]
    assert "Unbounded, because of run free" in " ".join(shown.err.split())
    assert [one["profile"] for one in shown.json["runs"]] == ["dp-distributed", "masked", "dp-distributed"]
    assert [one["epsilon"] is None for one in shown.json["runs"]] == [False, True, False]


@pytest.mark.slow
def test_a_run_that_bounds_words_leaves_documents_unbounded(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    ledgers = tmp_path / "ledgers"
    words = run(five, tmp_path, "words", "iftm", ledgers)["spent"][0]  # type: ignore[index]
    assert (words["unit"], words["unbounded_because"]) == ("word", None)
    assert words["all_runs"] == pytest.approx(8.0)
    whole = run(five, tmp_path, "whole", "dp-distributed", ledgers)["spent"][0]  # type: ignore[index]
    assert whole["all_runs"] is None
    assert "profile 'iftm' bounds single words, and no whole document" in whole["unbounded_because"]


@pytest.mark.parametrize("profile", quick(("open", "masked", "bfv"), "bfv"))
def test_the_entry_is_on_disk_before_the_first_answer_leaves(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Of a trial too: its ledger lies in the run's folder."""
    spent = run(five, tmp_path, "run", profile, None)["spent"]
    for one in spent:  # type: ignore[attr-defined]
        with Ledger.read(Path(one["ledger"])) as ledger:
            assert [entry.content["kind"] for entry in ledger.entries()] == ["opened", "unbounded"]
            assert one["trial"]
            assert one["head"] == ledger.head[1].hex()


def test_a_party_that_cannot_enter_it_answers_nothing(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(profile="open")
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    assert isinstance(played.send(party, played.invite()), wire.Accepted)
    assert party.ledger is not None
    party.ledger.end("another ledger")
    refused = played.send(party, played.ask("words", {}))
    assert refused == wire.Refusal("Failed")
    assert party.store.rows("SELECT * FROM rounds") == []


def test_no_party_starts_without_a_ledger(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    party = make_party("north", small_plan(profile="open"), corpora, tmp_path)
    with pytest.raises(Mistake, match="has no ledger to enter what it releases under profile"):
        type(party)("north", party.members, party.agreement, party.corpus, party.store, party.entropy)


def test_one_entry_says_it_for_all_answers_of_a_run(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(profile="open")
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    played.send(party, played.invite())
    for _ in range(2):
        assert isinstance(played.send(party, played.ask("words", {})), wire.Accepted)
    found = all_runs(tmp_path / "north.ledger")
    assert found is not None
    assert len(found.because) == 1


# ---- rows that nobody fixes ------------------------------------------------------------------------------------------------


def replied(plan: Plan, corpora: Mapping[str, Corpus], folder: Path) -> tuple[Party, wire.Outcome]:
    """What a party says to its first question for training if its model goes the way of a GPU."""
    party, played = paying_parties(plan, corpora, folder)["north"], Played(plan, tuple(corpora))
    party.questions.agreement.model.__dict__["_kernels"] = TorchKernels(torch.device("cpu"))
    settle(played, party)
    return party, played.send(party, played.ask(TRAIN, played.fresh()))


@pytest.mark.parametrize("which", ["north", "south"])
def test_a_model_whose_rows_nobody_fixes_is_refused_whatever_the_documents(
    which: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = private_plan(tmp_path, "dp-local", model__name="prodlda", model__hidden=8, privacy__noise=1.0)
    party, reply = replied(plan, {**five, "north": five[which]}, tmp_path)
    assert reply == wire.Refusal("RowsDepend")
    assert party.ledger is not None
    assert not party.ledger.spends(party.run)  # nothing was spent
    party.close()


def test_a_later_plan_cannot_raise_the_budget_of_a_party(spent: Path, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = private_plan(tmp_path, "dp-local", **{**SPENDING, "privacy__epsilon": 6.0})
    result = execute(begin(tmp_path / "another", plan, five, ledgers=spent), Unwatched(), comparison=False)
    assert result["rounds"] == 0
    assert all(one["all_runs"] <= 3.0 for one in result["spent"])
