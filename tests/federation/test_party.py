"""A party against a coordinator that lies: each lie ends in its named refusal, and the party goes on working afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.contracts import Array, Block, Cohort, Terms
from securetm.corpus.corpus import Corpus
from securetm.federation.coordinator.training import TrainingPhase
from securetm.federation.document_minimum import TooFewToTakePart
from securetm.federation.folder import begin, reopen
from securetm.federation.party.answering import Answering
from securetm.federation.party.party import Party
from securetm.federation.questions import preparation_identity, round_identity
from securetm.federation.simulation.simulation import execute
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.sessions.framing import head
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import SUBJECTS, StopsAfter, small_plan, texts
from .played import SESSION, Played, make_party, settled
from .private import private_plan
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


# ---- words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "name", "reason"),
    [
        (b"", "BadState", "no word"),
        (b"river\n", "BadWordList", "number 2"),
        (b"\n", "BadWordList", "number 1"),
        (b"river\x1b[31m\nboat", "BadWordList", "printable"),
        ("boat\nri\u202ever".encode(), "BadWordList", "printable"),
        (b"boat\nriver\r", "BadWordList", "printable"),
        (b" river", "BadWordList", "printable"),
        (b"boat\n\xff\xfe", "BadWordList", "not UTF-8"),
        (b"x" * 101, "BadWordList", "too long"),
        (b"river\nnever-before", "AnotherList", "another list of words"),
    ],
)
def test_words_that_nobody_can_agree_on(words: bytes, name: str, reason: str, stage: Stage) -> None:
    stage.refuses(wire.Adopt(words), name, reason)
    stage.still_works()


def test_a_question_before_the_words(uninvited: Stage) -> None:
    assert uninvited.says(uninvited.played.invite()) == wire.Accepted()
    uninvited.played.adopt(WORDS)
    for question in ("frequencies", "train", "held_out", "coherence"):
        uninvited.refuses(uninvited.played.ask(question, uninvited.about(question)), "BadState", "no vocabulary")
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
    agreed = {name: agree(plan).digest for name, plan in plans.items()}
    assert agreed["words"] == agreed["elsewhere"] == public.party.agreement.digest
    assert agreed["words"] != agreed["others"]


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


def test_frequencies_are_not_counted_again_over_fewer_words(uninvited: Stage) -> None:
    assert uninvited.says(uninvited.played.invite()) == wire.Accepted()
    assert uninvited.says(uninvited.played.adopt(WORDS, candidates=True)) == wire.Accepted()
    uninvited.answers(uninvited.played.ask("frequencies", {}))
    assert uninvited.says(uninvited.played.adopt(WORDS[:20])) == wire.Accepted()
    uninvited.refuses(uninvited.played.ask("frequencies", {}), "AlreadyAnswered", "another cohort")


# ---- one list of words for a run -------------------------------------------------------------------------------------------


def holding(documents: int) -> Corpus:
    """Sixty documents of one party, of which so many have the word `storm`."""
    said = texts(SUBJECTS["south"], 60 - documents, 1)
    return Corpus.from_strings([*said, *["storm"] * documents], name="south")


def told(word: str, corpus: Corpus, corpora: Mapping[str, Corpus], folder: Path) -> list[wire.Outcome]:
    """What a party says when it is invited and given that one word as its list."""
    folder.mkdir()
    (folder / "words.txt").write_text(f"{word}\nzyzzyva", "utf-8")
    plan = small_plan(vocabulary__source="file", origins__vocabulary="made up", vocabulary__file=str(folder / "words.txt"))
    party, played = make_party("south", plan, {**corpora, "south": corpus}, folder), Played(plan, tuple(corpora))
    played.profile = replace(party.agreement.profile, minimum_documents=15)
    party.agreement = replace(party.agreement, profile=played.profile)
    said = [played.send(party, played.invite()), played.send(party, played.adopt((word, "zyzzyva")))]
    said.append(played.send(party, played.ask("train", played.fresh())))
    party.store.close()
    return said


def test_whether_a_party_takes_part_says_nothing_of_words(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Each sum has to hold 15 documents of each party: they are counted before there is any list."""
    outcomes = [
        [
            (type(one), len(one.parcels[0]) if one.parcels else 0)
            for one in told("storm", holding(n), corpora, tmp_path / str(n))
        ]
        for n in (0, 14, 15, 40)
    ]
    assert all(kind is wire.Accepted for kind, _ in outcomes[0])
    assert all(one == outcomes[0] for one in outcomes)


@pytest.mark.parametrize("reopened", [False, True])
def test_a_second_list_is_refused_in_every_session_of_a_run(
    reopened: bool, stage: Stage, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    if reopened:
        stage.party.store.close()
        stage.party = make_party("north", stage.played.plan, corpora, tmp_path)
        stage.played.session = bytes(32)
    assert stage.says(stage.played.invite()) == wire.Accepted()
    stage.refuses(stage.played.adopt(WORDS[:20]), "AnotherList", "another list of words")
    settled(stage.played, stage.party, WORDS)
    stage.still_works()


def test_a_list_that_cannot_follow_from_what_was_counted(uninvited: Stage) -> None:
    assert uninvited.says(uninvited.played.invite()) == wire.Accepted()
    many = [f"word{n:05}" for n in range(uninvited.played.plan.vocabulary.max_words + 1)]
    uninvited.refuses(uninvited.played.adopt(many), "BadState", "longer than the plan says")
    assert uninvited.says(uninvited.played.adopt(WORDS, candidates=True)) == wire.Accepted()
    uninvited.refuses(uninvited.played.adopt([*WORDS[1:], "zyzzyva"]), "BadState", "not counted")
    settled(uninvited.played, uninvited.party, WORDS)
    uninvited.still_works()


def test_where_the_plan_asks_for_no_candidates_there_are_none(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(WORDS), "utf-8")
    plan = small_plan(vocabulary__source="file", origins__vocabulary="made up", vocabulary__file=str(tmp_path / "words.txt"))
    stage = Stage(make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora)))
    assert stage.says(stage.played.invite()) == wire.Accepted()
    stage.refuses(stage.played.adopt(WORDS, candidates=True), "BadState", "no candidates")


def test_about_candidates_nothing_but_frequencies_is_asked(uninvited: Stage) -> None:
    assert uninvited.says(uninvited.played.invite()) == wire.Accepted()
    assert uninvited.says(uninvited.played.adopt(WORDS, candidates=True)) == wire.Accepted()
    counted = uninvited.played.ask("frequencies", {})
    for question in ("train", "held_out", "coherence"):
        asked = uninvited.played.altered(counted, question=question, state=uninvited.played.fresh())
        uninvited.refuses(asked, "BadState", "no vocabulary")
    uninvited.answers(counted)
    uninvited.refuses(uninvited.played.adopt(WORDS[:20], candidates=True), "AnotherList", "another list of words")


def test_two_parties_with_unlike_lists_are_in_different_rounds(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan()
    told_of = {"north": WORDS, "south": tuple("zyzzyva" if word == WORDS[0] else word for word in WORDS)}
    coordinators = {name: Played(plan, tuple(corpora)) for name in told_of}
    parties: dict[str, Party] = {}
    for name, words in told_of.items():
        parties[name] = make_party(name, plan, corpora, tmp_path)
        settled(coordinators[name], parties[name], tuple(sorted(words)))
    one, other = (coordinators[name].ask("train", coordinators[name].fresh()) for name in told_of)
    assert one.state["weights"].shape == other.state["weights"].shape
    assert one.round_id != other.round_id
    assert coordinators["north"].send(parties["south"], one) == wire.Refusal("WrongRound")


def test_documents_that_cannot_be_read_in_the_words_change_no_reply(uninvited: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(corpus: Corpus, words: object) -> Corpus:
        if len(corpus):
            raise MemoryError
        return project(corpus, words)  # type: ignore[arg-type]

    project = Corpus.project
    monkeypatch.setattr(Corpus, "project", broken)
    settled(uninvited.played, uninvited.party, WORDS)
    uninvited.still_works()


def test_after_another_invitation_the_list_is_still_some_of_what_was_counted(uninvited: Stage) -> None:
    uninvited.says(uninvited.played.invite())
    assert uninvited.says(uninvited.played.adopt(WORDS[:9], candidates=True)) == wire.Accepted()
    uninvited.answers(uninvited.played.ask("frequencies", {}))
    uninvited.says(uninvited.played.invite())
    uninvited.refuses(wire.Adopt("\n".join(WORDS[:12]).encode()), "BadState", "not counted")
    assert uninvited.says(uninvited.played.adopt(WORDS[:5])) == wire.Accepted()
    uninvited.still_works()
    assert uninvited.party.store.get("candidates") is None  # others' rare words stay no longer than they are needed


# ---- each question as often as the plan asks it ----------------------------------------------------------------------------


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


def test_no_topics_at_all(stage: Stage) -> None:
    ask = stage.played.ask("coherence", TOP)
    outcome = stage.says(stage.played.altered(ask, state={"top": np.zeros((0, 5), np.int64)}))
    assert outcome in (wire.Refusal("BadState"), wire.Refusal("WrongRound"))
    stage.answers(ask)
