"""A party against a coordinator that lies: each lie ends in its named refusal, and the party goes on working afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.contracts import Array, Block, Cohort, Terms
from securetm.corpus.corpus import Corpus
from securetm.federation.document_minimum import TooFewToTakePart
from securetm.federation.questions import preparation_identity, round_identity
from securetm.federation.wire import wire
from securetm.sessions.framing import head

from .conftest import small_plan
from .played import SESSION, Played, make_party, settled
from .staged import TOP, WORDS, Stage

# ---- joining -------------------------------------------------------------------------------------------------------


def test_a_question_before_an_invitation(uninvited: Stage) -> None:
    uninvited.refuses(uninvited.played.ask("words", {}), "NotInvited", "before an invitation")
    uninvited.refuses(uninvited.played.adopt(WORDS), "NotInvited", "before an invitation")
    uninvited.refuses(wire.Forward(b"", b""), "NotInvited", "before an invitation")
    settled(uninvited.played, uninvited.party, WORDS)
    uninvited.still_works()


INVITATIONS: Mapping[str, tuple[Callable[[wire.Invite], wire.Invite], str]] = {
    "another plan": (lambda i: replace(i, agreement=bytes(32)), "the plan"),
    "no plan": (lambda i: replace(i, agreement=b""), "the plan"),
    "another profile": (lambda i: replace(i, profile=bytes(32)), "the profile"),
    "a stranger in the roster": (lambda i: replace(i, members=(*i.members, "stranger")), "the list of members"),
    "one less in the roster": (lambda i: replace(i, members=i.members[:-1]), "the list of members"),
    "another order of the roster": (lambda i: replace(i, members=i.members[::-1]), "the list of members"),
}


@pytest.mark.parametrize("lie", INVITATIONS)
def test_an_invitation_to_something_else(lie: str, uninvited: Stage) -> None:
    change, what = INVITATIONS[lie]
    uninvited.refuses(change(uninvited.played.invite()), "WrongAgreement", what)
    uninvited.refuses(uninvited.played.ask("words", {}), "NotInvited", "before an invitation")
    settled(uninvited.played, uninvited.party, WORDS)
    uninvited.still_works()


@pytest.mark.parametrize(
    "setting", [{"model__n_topics": 4}, {"training__rounds": 13}, {"seed": 1}, {"tokeniser__lower": False}]
)
def test_plans_that_differ_anywhere_do_not_agree(setting: dict[str, object], uninvited: Stage) -> None:
    seed = {"seed": setting["seed"]} if "seed" in setting else {}
    other = replace(small_plan(**{k: v for k, v in setting.items() if k != "seed"}), **seed)  # type: ignore[arg-type]
    liar = Played(other, uninvited.played.members)
    uninvited.refuses(liar.invite(), "WrongAgreement", "the plan")


@pytest.mark.parametrize("session", [b"", b"short", bytes(33)])
def test_a_session_has_32_bytes(session: bytes, uninvited: Stage) -> None:
    uninvited.refuses(uninvited.played.invite(), "WrongAgreement", "the session", session)


def test_another_session_in_the_middle_of_one(stage: Stage) -> None:
    other = bytes(32)
    stage.refuses(stage.played.ask("coherence", TOP), "WrongSession", "another session", other)
    stage.still_works()


def test_another_invitation_ends_the_session_before(stage: Stage) -> None:
    """A coordinator that lost a party in the middle of a session begins another one with all of them."""
    before, stage.played.session = stage.played.session, bytes(32)
    settled(stage.played, stage.party, WORDS)
    stage.refuses(stage.played.ask("coherence", TOP), "WrongSession", "another session", before)
    stage.still_works()


def test_what_comes_before_an_invitation_is_not_measured(uninvited: Stage) -> None:
    """A party that was started anew has forgotten how long the messages of its session may be, and says that it forgot."""
    assert uninvited.says(wire.Forward(bytes(32), bytes(1 << 20))) == wire.Refusal("NotInvited")


def test_a_party_with_too_few_documents_does_not_join(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    party = make_party("west", small_plan(), corpora, tmp_path)
    profile = replace(party.agreement.profile, minimum_documents=len(corpora["west"]) * 3 + 1)
    with pytest.raises(TooFewToTakePart, match="west has too few documents"):  # to its own user, not to the coordinator
        replace(party, agreement=replace(party.agreement, profile=profile))
    party.store.close()


def test_a_sum_over_too_few_documents_is_refused(stage: Stage) -> None:
    asked = stage.played.ask("train", stage.played.fresh())
    profile = replace(stage.party.agreement.profile, minimum_documents=3 * 16 + 1)  # three parties, batches of 16
    stage.party.agreement = replace(stage.party.agreement, profile=profile)
    stage.refuses(asked, "BelowMinimum", "below the profile")


def test_going_on_from_a_round_that_was_never_kept(stage: Stage) -> None:
    stage.answers(stage.played.ask("train", stage.played.fresh()))  # not kept
    stage.refuses(stage.played.invite(resume_from=1), "OutOfTurn", "round 1")
    stage.refuses(stage.played.invite(resume_from=2**62), "OutOfTurn", str(2**62))
    stage.still_works()


def test_going_on_from_a_round_that_was_kept(stage: Stage) -> None:
    state = stage.played.fresh()
    stage.answers(stage.played.ask("train", state, keep=True))
    second = stage.played.ask("train", state, number=1)
    first_time = stage.answers(second)
    assert stage.says(stage.played.invite(resume_from=1)) == wire.Accepted()
    assert stage.says(stage.played.adopt(WORDS)) == wire.Accepted()
    assert stage.answers(second) == first_time


def test_begun_again_after_answers_the_session_can_still_be_resumed(stage: Stage) -> None:
    """The coordinator died before it kept its first state: it begins again, and asks what the party has answered before."""
    for _ in range(2):
        stage.played.serial = 0
        assert stage.says(stage.played.invite()) == wire.Accepted()
        stage.answers(stage.played.ask("words", {}))
        assert stage.says(stage.played.adopt(WORDS, candidates=True)) == wire.Accepted()
        stage.answers(stage.played.ask("frequencies", {}, keep=True))
        assert stage.says(stage.played.adopt(WORDS)) == wire.Accepted()
    assert stage.says(stage.played.invite(resume_from=2)) == wire.Accepted()


def test_a_session_has_no_more_set_ups_than_the_plan_has_answers(stage: Stage) -> None:
    def set_up(number: int) -> wire.Prepare:
        return wire.Prepare(preparation_identity(SESSION, number, 1), number, 1)

    most = stage.party.questions.most_answers()
    assert most > stage.played.plan.training.rounds
    for number in range(1, most + 1):
        assert stage.says(set_up(number)) == wire.Accepted()
    stage.refuses(set_up(most + 1), "TooManySetups", f"the plan has {most} answers")
    assert stage.says(stage.played.invite()) == wire.Accepted()
    assert stage.says(set_up(1)) == wire.Accepted()


# ---- cohorts and round ids -----------------------------------------------------------------------------------------


COHORTS = {
    "without the party": (("south", "west"), "NotInCohort", "north"),
    "with a stranger": (("north", "south", "stranger"), "NotInCohort", "stranger"),
    "below the minimum": (("north",), "CohortTooSmall", "minimum of 2"),
}


@pytest.mark.parametrize("question", ["words", "frequencies", "coherence", "train", "held_out"])
@pytest.mark.parametrize("lie", COHORTS)
def test_a_wrong_cohort(lie: str, question: str, stage: Stage) -> None:
    members, name, reason = COHORTS[lie]
    stage.refuses(stage.played.ask(question, stage.about(question), members=members), name, reason)
    stage.still_works()


ALTERED: Mapping[str, dict[str, object]] = {
    "round id": {"round_id": bytes(32)},
    "no round id": {"round_id": b""},
    "number": {"number": 1},
    "serial": {"serial": 99},
    "cohort": {"members": ("north", "south")},
    "order of the cohort": {"members": ("west", "south", "north")},
    "question": {"question": "held_out"},
}


@pytest.mark.parametrize("lie", ALTERED)
def test_a_round_id_that_does_not_follow(lie: str, stage: Stage) -> None:
    ask = stage.played.ask("train", stage.played.fresh())
    stage.refuses(stage.played.altered(ask, **ALTERED[lie]), "WrongRound", "does not follow")
    stage.answers(ask)


def test_a_round_id_binds_all_that_a_round_is() -> None:
    terms = Terms((Block("a", (2,)),))
    one = {"session": b"s", "question": "train", "cohort": Cohort(b"", 0, ("a", "b")), "serial": 1, "terms": terms}
    whole: dict[str, Any] = {**one, "under": b"u", "about": b"a", "words": b"w"}
    others = {"session": b"t", "question": "words", "cohort": Cohort(b"", 1, ("a", "b")), "serial": 2, "words": b"v"}
    changed: dict[str, Any] = {**others, "terms": replace(terms, l2=1.0), "under": b"v", "about": b"b"}
    assert changed.keys() == whole.keys()
    found = {round_identity(**{**whole, name: value}) for name, value in changed.items()}
    assert len({*found, round_identity(**whole)}) == len(whole) + 1


def test_a_state_altered_by_one_bit(stage: Stage) -> None:
    state = dict(stage.played.fresh())
    ask = stage.played.ask("train", state)
    weights = state["weights"].copy()
    weights.view(np.uint8)[0] ^= 1
    stage.refuses(stage.played.altered(ask, state={**state, "weights": weights}), "WrongRound", "does not follow")
    stage.answers(ask)


def test_a_question_nobody_agreed_to(stage: Stage) -> None:
    ask = stage.played.ask("train", stage.played.fresh())
    stage.refuses(stage.played.altered(ask, question="documents"), "UnknownQuestion", "documents")
    stage.still_works()


def test_a_serial_replayed(stage: Stage) -> None:
    ask = stage.played.ask("train", stage.played.fresh(), serial=5)
    stage.answers(ask)
    stage.refuses(ask, "OutOfTurn", "round 5 was asked for after round 5")
    stage.refuses(stage.played.ask("coherence", TOP, serial=4), "OutOfTurn", "round 4 was asked for after round 5")
    stage.still_works()


def test_the_last_serial_there_is(stage: Stage) -> None:
    stage.answers(stage.played.ask("train", stage.played.fresh(), number=11, serial=2**63 - 1, keep=True))
    assert stage.says(stage.played.invite()) == wire.Accepted()
    assert stage.says(stage.played.adopt(WORDS)) == wire.Accepted()
    stage.answers(stage.played.ask("train", stage.played.fresh(), serial=1))


@pytest.mark.parametrize(("question", "number"), [("train", 12), ("train", 2**63 - 1), ("held_out", 1), ("coherence", 1)])
def test_more_questions_than_the_plan_has(question: str, number: int, stage: Stage) -> None:
    asked = stage.played.ask(question, stage.about(question), number=number)
    stage.refuses(asked, "AskedTooOften", f"the plan has no question {question!r} number {number}")
    stage.still_works()


def test_a_message_to_a_round_that_is_not_open(stage: Stage) -> None:
    stage.refuses(wire.Forward(bytes(32), b"parcel"), "UnknownRound", "0000")
    ask = stage.played.ask("train", stage.played.fresh())
    stage.answers(ask)
    stage.refuses(wire.Forward(ask.round_id, b"parcel"), "AnotherVersion", "version 112")
    stage.refuses(wire.Forward(ask.round_id, head(1) + b"parcel"), "UnexpectedMessage", "coordinator")
    stage.still_works()


# ---- what a question is about --------------------------------------------------------------------------------------

State = dict[str, Array]


def with_value(value: float) -> Callable[[State], State]:
    def spoil(state: State) -> State:
        weights = state["weights"].copy()
        weights[3] = value
        return {**state, "weights": weights}

    return spoil


STATES: Mapping[str, Callable[[State], State]] = {
    "not a number": with_value(np.nan),
    "infinite": with_value(np.inf),
    "minus infinite": with_value(-np.inf),
    "missing": lambda s: {name: array for name, array in s.items() if name != "step"},
    "one too many": lambda s: {**s, "first": s["weights"]},
    "empty": lambda s: {},
    "shorter": lambda s: {**s, "weights": s["weights"][:-1]},
    "another shape": lambda s: {**s, "weights": s["weights"][None, :]},
    "another type": lambda s: {**s, "weights": s["weights"].astype(np.float64)},
    "no dimension": lambda s: {**s, "step": np.array(1)},
}


@pytest.mark.parametrize("question", ["train", "held_out"])
@pytest.mark.parametrize("lie", STATES)
def test_a_state_that_is_not_the_models(lie: str, question: str, stage: Stage) -> None:
    ask = stage.played.ask(question, stage.played.fresh())
    changed = STATES[lie](dict(stage.played.fresh()))
    stage.refuses(stage.played.altered(ask, state=changed), "BadState", "array")
    stage.answers(ask)


TOPS = {
    "a word beyond the vocabulary": np.array([[0, len(WORDS)]]),
    "a negative word": np.array([[0, -1]]),
    "one word a topic": np.zeros((2, 1), np.int64),
    "eleven words a topic": np.zeros((2, 11), np.int64),
    "no topic of two words": np.zeros((2, 0), np.int64),
    "one dimension": np.arange(4),
    "floats": np.zeros((2, 3)),
    "unsigned": np.zeros((2, 3), np.uint64),
    "300 topics": np.zeros((300, 2), np.int64),
}


@pytest.mark.parametrize("lie", TOPS)
def test_top_words_that_are_none(lie: str, stage: Stage) -> None:
    ask = stage.played.ask("coherence", TOP)
    stage.refuses(stage.played.altered(ask, state={"top": TOPS[lie]}), "BadState", "list of top words")
    stage.refuses(stage.played.altered(ask, state={}), "BadState", "list of top words")
    stage.refuses(stage.played.altered(ask, state={**TOP, "more": TOP["top"]}), "BadState", "list of top words")
    stage.answers(ask)


@pytest.mark.filterwarnings("default")  # overflow in a model that a liar made is no fault of the party
@pytest.mark.parametrize("size", [1e10, 1e30, 3e38])
@pytest.mark.parametrize("question", ["train", "held_out"])
def test_a_state_that_overflows_is_answered_or_refused(question: str, size: float, stage: Stage) -> None:
    state = dict(stage.played.fresh())
    state["weights"] = np.full_like(state["weights"], size)
    stage.says(stage.played.ask(question, state))
    stage.still_works()


def test_no_topics_at_all(stage: Stage) -> None:
    ask = stage.played.ask("coherence", TOP)
    outcome = stage.says(stage.played.altered(ask, state={"top": np.zeros((0, 5), np.int64)}))
    assert outcome in (wire.Refusal("BadState"), wire.Refusal("WrongRound"))
    stage.answers(ask)
