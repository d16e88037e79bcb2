"""One list of words for a run: which words a coordinator sends, and how documents meet them, changes no reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.party.party import Party
from securetm.federation.wire import wire

from .conftest import SUBJECTS, small_plan, texts
from .played import Played, make_party, settled
from .staged import WORDS, Stage

FEW = 3  # documents with the word that is asked about


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


def test_a_second_list_is_refused(stage: Stage) -> None:
    for words in (WORDS[:20], [*WORDS, "zyzzyva"], ("river", "boat"), WORDS[1:]):
        stage.refuses(stage.played.adopt(words), "AnotherList", "another list of words")
    assert stage.says(stage.played.adopt(WORDS)) == wire.Accepted()  # the same again is no other


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
    stage.party.store.close()


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
    for party in parties.values():
        party.store.close()


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
