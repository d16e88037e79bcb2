"""A party against a coordinator that lies: each lie ends in its named refusal, and the party goes on working afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from securetm.aggregation.plain import PlainSum
from securetm.aggregation.vectors import unpack_vector
from securetm.contracts import Array, Roster, Terms
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, TooFewToTakePart
from securetm.federation import wire
from securetm.federation.party import Party

from .conftest import SHARED, SUBJECTS, small_plan
from .played import Played, make_party, refusals, settled

WORDS = tuple(sorted({*SHARED, *SUBJECTS["north"], *SUBJECTS["south"]}))
TOP = {"top": np.arange(6).reshape(2, 3)}


@dataclass
class Stage:
    """A party and the coordinator that is played against it."""

    party: Party
    played: Played

    def says(self, body: wire.Body, session: bytes | None = None) -> wire.Outcome:
        return self.played.send(self.party, body, session)

    def refuses(self, body: wire.Body, name: str, reason: str, session: bytes | None = None) -> None:
        """Only the name on the wire, the reason in the party's own store, and an honest question still gets its answer."""
        reply = self.party.handle(wire.pack_request(self.played.session if session is None else session, body))
        expected = wire.pack_reply(self.played.session if session is None else session, wire.Refusal(name))
        assert reply == expected, (wire.unpack_reply(reply, "the party"), refusals(self.party)[-1])
        found = refusals(self.party)[-1]
        assert found[0] == name
        assert reason in found[1]

    def answers(self, ask: wire.Ask) -> bytes:
        outcome = self.says(ask)
        assert isinstance(outcome, wire.Accepted), (outcome, refusals(self.party)[-1])
        (parcel,) = outcome.parcels
        return parcel

    def still_works(self) -> None:
        assert self.answers(self.played.ask("train", self.played.fresh(), number=7, serial=self.played.serial + 1000))


@pytest.fixture
def uninvited(corpora: Mapping[str, Corpus], tmp_path: Path) -> Iterator[Stage]:
    plan = small_plan()
    stage = Stage(make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora)))
    yield stage
    stage.party.store.close()


@pytest.fixture
def stage(uninvited: Stage) -> Stage:
    settled(uninvited.played, uninvited.party, WORDS)
    return uninvited


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
    stage.refuses(stage.played.invite(), "WrongAgreement", "the session", other)
    stage.still_works()


def test_a_party_with_too_few_documents_does_not_join(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    party = make_party("west", small_plan(), corpora, tmp_path)
    fewer = {"profile": replace(party.profile, minimum_documents=len(corpora["west"]) * 3 + 1)}
    with pytest.raises(TooFewToTakePart, match="west has too few documents"):  # to its own user, not to the coordinator
        replace(party, **fewer)
    party.store.close()


def test_a_sum_over_too_few_documents_is_refused(stage: Stage) -> None:
    asked = stage.played.ask("train", stage.played.fresh())
    stage.party.profile = replace(stage.party.profile, minimum_documents=3 * 16 + 1)  # three parties, batches of 16
    stage.refuses(asked, "BelowMinimum", "below the profile")


def test_going_on_from_a_round_that_was_never_kept(stage: Stage) -> None:
    stage.answers(stage.played.ask("train", stage.played.fresh()))  # not kept
    stage.refuses(stage.played.invite(resume_from=1), "OutOfTurn", "round 1")
    stage.refuses(stage.played.invite(resume_from=2**64 - 1), "OutOfTurn", str(2**64 - 1))
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
        assert stage.says(stage.played.adopt(WORDS)) == wire.Accepted()
        stage.answers(stage.played.ask("frequencies", {}, keep=True))
        assert stage.says(stage.played.adopt(WORDS[:20])) == wire.Accepted()
    assert stage.says(stage.played.invite(resume_from=2)) == wire.Accepted()


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
    stage.refuses(stage.played.ask(question, about(stage, question), members=members), name, reason)
    stage.still_works()


def about(stage: Stage, question: str) -> dict[str, Array]:
    return TOP if question == "coherence" else dict(stage.played.fresh()) if question in ("train", "held_out") else {}


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
    stage.answers(stage.played.ask("train", stage.played.fresh(), number=2**63 - 1, serial=2**63 - 1, keep=True))
    assert stage.says(stage.played.invite()) == wire.Accepted()
    assert stage.says(stage.played.adopt(WORDS)) == wire.Accepted()
    stage.answers(stage.played.ask("train", stage.played.fresh(), serial=1))


def test_a_message_to_a_round_that_is_not_open(stage: Stage) -> None:
    stage.refuses(wire.Forward(bytes(32), b"parcel"), "UnknownRound", "0000")
    ask = stage.played.ask("train", stage.played.fresh())
    stage.answers(ask)
    stage.refuses(wire.Forward(ask.round_id, b"parcel"), "NotInCohort", "coordinator")
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
    "100000 topics": np.zeros((100_000, 2), np.int64),
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


# ---- words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "name", "reason"),
    [
        (b"", "BadState", "empty"),
        (b"river\n", "BadWordList", "number 2"),
        (b"\n", "BadWordList", "number 1"),
        (b"river\x1b[31m\nboat", "BadWordList", "printable"),
        ("boat\nri\u202ever".encode(), "BadWordList", "printable"),
        (b"boat\nriver\r", "BadWordList", "printable"),
        (b" river", "BadWordList", "printable"),
        (b"boat\n\xff\xfe", "BadWordList", "not UTF-8"),
        (b"x" * 101, "BadWordList", "too long"),
        (b"river\nnever-before", "BadState", "not in the one before"),
    ],
)
def test_words_that_nobody_can_agree_on(words: bytes, name: str, reason: str, stage: Stage) -> None:
    stage.refuses(wire.Adopt(words), name, reason)
    stage.still_works()


def test_a_vocabulary_shrinks_and_never_grows_again(stage: Stage) -> None:
    assert stage.says(stage.played.adopt(WORDS[:20])) == wire.Accepted()
    stage.refuses(wire.Adopt("\n".join(WORDS).encode()), "BadState", "not in the one before")
    stage.still_works()


def test_a_question_before_the_words(uninvited: Stage) -> None:
    assert uninvited.says(uninvited.played.invite()) == wire.Accepted()
    uninvited.played.adopt(WORDS)
    for question in ("frequencies", "train", "held_out", "coherence"):
        uninvited.refuses(uninvited.played.ask(question, about(uninvited, question)), "BadState", "no vocabulary")
    uninvited.answers(uninvited.played.ask("words", {}))


@pytest.fixture
def public(corpora: Mapping[str, Corpus], tmp_path: Path) -> Iterator[Stage]:
    (tmp_path / "words.txt").write_text("\n".join(WORDS), encoding="utf-8")
    plan = small_plan(vocabulary__source="file", vocabulary__file=str(tmp_path / "words.txt"))
    made = Stage(make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora)))
    yield made
    made.party.store.close()


def test_other_words_than_the_public_files(public: Stage) -> None:
    assert public.says(public.played.invite()) == wire.Accepted()
    for words in (WORDS[:-1], [*WORDS, "tensor"], ["river", "boat"]):
        public.refuses(wire.Adopt("\n".join(words).encode()), "WrongAgreement", "the vocabulary")
    settled(public.played, public.party, WORDS)
    public.still_works()


def test_with_a_public_file_nobody_asks_for_words(public: Stage) -> None:
    settled(public.played, public.party, WORDS)
    ask = public.played.ask("coherence", TOP)
    for question in ("words", "frequencies"):
        public.refuses(public.played.altered(ask, question=question, state={}), "UnknownQuestion", question)
    public.answers(ask)


def test_two_files_of_the_same_words_are_the_same_plan(public: Stage, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_text("\n".join(reversed(WORDS)) + "\n", encoding="utf-8")
    (tmp_path / "others.txt").write_text("\n".join(WORDS[1:]), encoding="utf-8")
    choices = {name: str(tmp_path / f"{name}.txt") for name in ("words", "elsewhere", "others")}
    plans = {name: small_plan(vocabulary__source="file", vocabulary__file=file) for name, file in choices.items()}
    assert plans["words"].agreement() == plans["elsewhere"].agreement() == public.party.plan.agreement()
    assert plans["words"].agreement() != plans["others"].agreement()


def test_a_public_file_that_is_gone_is_told_when_the_party_starts(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("river\nboat", encoding="utf-8")
    plan = small_plan(vocabulary__source="file", vocabulary__file=str(tmp_path / "words.txt"))
    (tmp_path / "words.txt").unlink()
    with pytest.raises(BadSetting, match=r"words\.txt"):
        make_party("north", plan, corpora, tmp_path)


# ---- what is answered once -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["words", "frequencies"])
def test_the_same_question_gets_the_same_bytes(question: str, stage: Stage) -> None:
    first = stage.answers(stage.played.ask(question, {}, keep=True))
    stage.answers(stage.played.ask("train", stage.played.fresh()))
    assert stage.answers(stage.played.ask(question, {}, number=1)) == first
    kept = stage.party.store.rows("SELECT COUNT(*) FROM rounds WHERE question = ?", question)
    assert kept[0][0] <= 1  # documents were counted once


@pytest.mark.parametrize("question", ["words", "frequencies"])
@pytest.mark.parametrize("reopened", [False, True])
def test_another_cohort_gets_no_second_sum(
    question: str, reopened: bool, stage: Stage, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    stage.answers(stage.played.ask(question, {}))
    if reopened:  # nor in another session, after the party was started anew
        stage.party.store.close()
        stage.party = make_party("north", stage.played.plan, corpora, tmp_path)
        stage.played.session = bytes(32)
        settled(stage.played, stage.party, WORDS)
    for members in (("north", "south"), ("north", "west")):
        stage.refuses(stage.played.ask(question, {}, members=members), "AlreadyAnswered", "another cohort")
    stage.still_works()


def test_frequencies_are_not_counted_again_over_fewer_words(stage: Stage) -> None:
    stage.answers(stage.played.ask("frequencies", {}))
    assert stage.says(stage.played.adopt(WORDS[:20])) == wire.Accepted()
    stage.refuses(stage.played.ask("frequencies", {}), "AlreadyAnswered", "another cohort")


def test_without_that_refusal_two_exact_sums_show_one_party(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Differencing: co-occurrence counts depend on the model, so they are asked again, and of any cohort, but not as the same
    question. Even an aggregation that shows nothing but exact sums gives the left-out party's own vector away; document
    frequencies are refused instead."""
    plan = small_plan()
    liar = Played(plan, tuple(corpora))
    parties = {name: make_party(name, plan, corpora, tmp_path) for name in corpora}
    for party in parties.values():
        settled(liar, party, WORDS)
    all_of_them, without_west = ("north", "south", "west"), ("north", "south")
    first = opened(liar, parties, "coherence", TOP, all_of_them)
    for name in without_west:
        again = liar.ask("coherence", TOP, members=without_west)
        Stage(parties[name], liar).refuses(again, "AnotherCohort", "another cohort")
    second = opened(liar, parties, "coherence", TOP, without_west, number=1)
    alone = unpack_vector(
        Stage(parties["west"], liar).answers(liar.ask("coherence", TOP)), liar.terms("coherence", TOP), "west"
    )
    assert all(np.array_equal(first[name] - second[name], alone[name]) for name in alone)
    assert alone["documents"][0] == len(parties["west"].documents.for_question("coherence"))
    opened(liar, parties, "frequencies", {}, all_of_them)
    for name in without_west:
        Stage(parties[name], liar).refuses(
            liar.ask("frequencies", {}, members=without_west), "AlreadyAnswered", "another cohort"
        )
    for party in parties.values():
        party.store.close()


def opened(
    liar: Played, parties: Mapping[str, Party], question: str, state: State, members: tuple[str, ...], number: int = 0
) -> Mapping[str, Array]:
    """The exact sum over a cohort, opened as the plain sum's coordinator does."""
    ask = liar.ask(question, state, members=members, number=number)
    terms: Terms = liar.terms(question, state, members)
    seat = PlainSum().coordinator(Roster(b"", b"", members), parties[members[0]].store)
    cohort = replace(liar._cohort(number, members), round_id=ask.round_id)
    exchange = seat.round(cohort, terms)
    for name in members:
        exchange.receive(name, Stage(parties[name], liar).answers(ask))
    total = seat.answer(ask.round_id).total
    assert total is not None
    return total


def test_the_words_of_a_party_are_only_its_own(stage: Stage) -> None:
    words = stage.answers(stage.played.ask("words", {})).decode().split("\n")
    assert words == sorted(words)
    assert set(words) == {*SUBJECTS["north"], *SHARED}
