"""Each question as often as the plan asks it: a number is answered again only for the very same question."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.coordinator.training import TrainingPhase
from securetm.federation.coordinator.words import new_words, tell_words, words_of_before
from securetm.federation.folder import begin, reopen
from securetm.federation.party.answering import Answering
from securetm.federation.questions import TRAIN
from securetm.federation.simulation.simulation import InProcess, execute
from securetm.federation.simulation.simulation import make_party as make_real_party
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import Watch
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import StopsAfter, small_plan
from .played import Played, make_party, settled
from .private import PUBLIC, private_plan
from .staged import TOP, WORDS, Stage

OTHER_TOP = {"top": np.arange(6)[::-1].reshape(2, 3).copy()}


def again(stage: Stage) -> None:
    """Another session of the same run: what was kept last, and the same words."""
    stage.played.serial = 0
    settled(stage.played, stage.party, WORDS)


def answered(corpora: Mapping[str, Corpus], folder: Path) -> Mapping[str, int]:
    """How many different answers a coordinator gets that begins again and again, about another state each time."""
    plan = small_plan(training__rounds=2)
    stage = Stage(make_party("north", plan, corpora, folder), Played(plan, tuple(corpora)))
    got: dict[str, set[bytes]] = {"train": set(), "held_out": set(), "coherence": set()}
    rng = np.random.default_rng(0)
    for _ in range(10):
        again(stage)
        state = dict(stage.played.fresh())
        state["weights"] = state["weights"] + rng.normal(size=state["weights"].shape).astype(np.float32)
        top = {"top": rng.permutation(len(WORDS))[:6].reshape(2, 3)}
        asked = [("train", 0, state), ("train", 1, state), ("held_out", 0, state), ("coherence", 0, top)]
        for question, number, about in asked:
            outcome = stage.says(stage.played.ask(question, about, number=number))
            got[question] |= set(outcome.parcels) if isinstance(outcome, wire.Accepted) else set()
    stage.party.store.close()
    return {question: len(answers) for question, answers in got.items()}


def test_beginning_again_gets_no_more_answers_than_the_plan_has(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    assert answered(corpora, tmp_path) == {"train": 2, "held_out": 1, "coherence": 1}


def test_the_very_same_question_is_answered_again(stage: Stage) -> None:
    state = stage.played.fresh()
    first = [stage.answers(stage.played.ask("train", state)), stage.answers(stage.played.ask("coherence", TOP))]
    again(stage)
    second = [stage.answers(stage.played.ask("train", state)), stage.answers(stage.played.ask("coherence", TOP))]
    assert first == second


@pytest.mark.parametrize("reopened", [False, True])
def test_a_number_about_something_else_is_refused(
    reopened: bool, stage: Stage, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    stage.answers(stage.played.ask("train", stage.played.fresh()))
    stage.answers(stage.played.ask("coherence", TOP))
    if reopened:
        stage.party.store.close()
        stage.party = make_party("north", stage.played.plan, corpora, tmp_path)
    again(stage)
    state = dict(stage.played.fresh())
    state["weights"] = np.nextafter(state["weights"], np.float32(1))
    stage.refuses(stage.played.ask("train", state), "AskedOtherwise", "about something else")
    stage.refuses(stage.played.ask("coherence", OTHER_TOP), "AskedOtherwise", "about something else")
    stage.refuses(stage.played.ask("train", stage.played.fresh(), serial=7), "AskedOtherwise", "about something else")
    stage.still_works()


def test_what_a_question_was_about_is_on_disk_before_it_is_answered(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Answering, "clipped_answer", killed)
    with pytest.raises(KeyboardInterrupt):
        stage.says(stage.played.ask("train", stage.played.fresh()))
    monkeypatch.undo()
    again(stage)
    state = dict(stage.played.fresh())
    state["weights"] = state["weights"] * 2
    stage.refuses(stage.played.ask("train", state), "AskedOtherwise", "about something else")


def test_a_model_with_a_memory_is_asked_again_from_the_same_memory(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    """From another one the same table of counts would bring another answer."""
    plan = small_plan(model={"name": "lda", "n_topics": 3})
    stage = Stage(make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora)))
    settled(stage.played, stage.party, WORDS)
    state = stage.played.fresh()
    stage.answers(stage.played.ask("train", state, keep=True))
    second = stage.answers(stage.played.ask("train", state, number=1))
    assert stage.says(stage.played.invite(resume_from=1)) == wire.Accepted()
    assert stage.says(stage.played.adopt(WORDS)) == wire.Accepted()
    assert stage.answers(stage.played.ask("train", state, number=1, serial=2)) == second
    assert stage.says(stage.played.invite()) == wire.Accepted()  # and from no memory at all
    assert stage.says(stage.played.adopt(WORDS)) == wire.Accepted()
    stage.refuses(stage.played.ask("train", state, number=1, serial=2), "AskedOtherwise", "about something else")
    stage.party.store.close()


@pytest.mark.parametrize("profile", quick(["open", "masked", "bfv"], "masked"))
def test_a_run_that_would_not_ask_about_the_same_bits_goes_on_all_the_same(
    profile: str, five: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where arithmetic moves a last digit, as libraries do, the state that was asked about is on the coordinator's disk."""
    settings = {"training__rounds": 6, "model__batch": 34}
    plan = private_plan(tmp_path, profile, **settings)
    folder = begin(tmp_path / "run", plan, five)
    monkeypatch.setattr(TrainingPhase, "keep_is_due", lambda _: False)
    with pytest.raises(Exception, match="interrupted"):
        execute(folder, StopsAfter(4), comparison=False)
    model = type(agree(plan).model)
    update = model.update

    def moved(self: object, state: dict[str, np.ndarray], answer: object) -> dict[str, np.ndarray]:
        after = update(self, state, answer)  # type: ignore[arg-type]
        return {**after, "weights": np.nextafter(after["weights"], np.float32(1))}

    if profile != "bfv":  # there the parties make each update, from the same bytes of an answer
        monkeypatch.setattr(model, "update", moved)
    assert execute(reopen(folder.path), Unwatched(), comparison=False)["rounds"] == 6


@pytest.mark.slow
def test_paid_answers_are_about_the_same_state_too(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Asked again after a crash, it is the kept answer, for no charge; nothing else is sold under that number."""
    run = begin(tmp_path / "run", private_plan(tmp_path, "dp-local"), five)
    parties = InProcess({name: make_real_party(run, name) for name in run.members})
    store = CoordinatorStore(run.coordinator)
    profile = run.agreement.profile
    at_work = Coordinator(run.members, run.agreement, parties, store, OperatingSystem(), Watch(), run.keys)
    at_work.tell(wire.Invite(run.agreement.digest, profile.digest, run.members, 0))
    tell_words(at_work, new_words(at_work))
    state = at_work.agreement.model.start(PUBLIC, np.random.default_rng(run.agreement.plan.seed))
    at_work.ask(TRAIN, state)
    for about in (state, {**state, "weights": state["weights"] * 2}):
        at_work.tell(wire.Invite(run.agreement.digest, profile.digest, run.members, 0))
        tell_words(at_work, words_of_before(at_work))
        at_work.serial, at_work.numbers, at_work._preparations = 0, {}, 0
        if about is state:
            at_work.ask(TRAIN, about)
        else:
            with pytest.raises(PartyRefused, match="AskedOtherwise"):
                at_work.ask(TRAIN, about)
    assert [party.ledger.head[0] for party in parties.parties.values() if party.ledger] == [3] * 5  # opened, paid, answered
    parties.close()
    store.close()
