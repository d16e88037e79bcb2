"""Words that a party agrees on, and questions that it answers once: a coordinator that lies about either is refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from securetm.aggregation.plain import PlainSum
from securetm.aggregation.vectors import unpack_vector
from securetm.contracts import Array, Roster, Terms
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting
from securetm.federation.party.party import Party
from securetm.federation.questions import Questions
from securetm.federation.wire import wire
from securetm.plans.agreement import agree

from .conftest import SHARED, SUBJECTS, small_plan
from .played import Played, make_party, settled
from .staged import TOP, WORDS, Stage

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


def test_frequencies_are_not_counted_again_over_fewer_words(uninvited: Stage) -> None:
    assert uninvited.says(uninvited.played.invite()) == wire.Accepted()
    assert uninvited.says(uninvited.played.adopt(WORDS, candidates=True)) == wire.Accepted()
    uninvited.answers(uninvited.played.ask("frequencies", {}))
    assert uninvited.says(uninvited.played.adopt(WORDS[:20])) == wire.Accepted()
    uninvited.refuses(uninvited.played.ask("frequencies", {}), "AlreadyAnswered", "another cohort")


def test_without_those_refusals_two_exact_sums_show_one_party(
    corpora: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Differencing: even an aggregation that shows nothing but exact sums gives the left-out party's own vector away, if
    parties that count no questions are asked a second time."""
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
        Stage(parties[name], liar).refuses(
            liar.ask("coherence", TOP, members=without_west, number=1), "AskedTooOften", "the plan has no question"
        )
    monkeypatch.setattr(Questions, "numbers", lambda *_: np.inf)
    second = opened(liar, parties, "coherence", TOP, without_west, number=1)
    alone = unpack_vector(
        Stage(parties["west"], liar).answers(liar.ask("coherence", TOP, number=2)), liar.terms("coherence", TOP), "west"
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
    liar: Played,
    parties: Mapping[str, Party],
    question: str,
    state: dict[str, Array],
    members: tuple[str, ...],
    number: int = 0,
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
