"""Agreeing on words: lists that are sent show every party's words; a sum hides whose they are, and not that there are such."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from securetm.auditing.attack import GroundTruth, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.vocabulary import GIVEN_AWAY, HELD, RIGHT, WHOSE, tabled
from securetm.auditing.ground_truth import colluding_parties_of, ground_truth_of
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.views import AdversaryView, totals
from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder

from .conftest import PARTIES, Recorded, adversary
from .tried import counted, share

ATTACK = attack_called("vocabulary_leakage")


def seen(folder: RunFolder, helpers: int = 0) -> AdversaryView:
    view = view_of(folder, adversary(), ATTACK, 1)
    return replace(view, insiders=colluding_parties_of(folder, helpers))


def true(folder: RunFolder, helpers: int = 0) -> GroundTruth:
    truth = ground_truth_of(folder, questions_of(folder, ATTACK.questions, 1).values())
    return replace(truth, helpers=PARTIES[len(PARTIES) - helpers :])


def judged(view: AdversaryView, truth: GroundTruth) -> Score:
    return ATTACK.judge(ATTACK.attack(view, {"rounds": 1}), truth)


def holders(parties: Mapping[str, Corpus], words: tuple[str, ...]) -> np.ndarray:
    """In how many parties each word really occurs."""
    own = [frozenset(parties[name].vocabulary) for name in PARTIES]
    return np.array([sum(word in words_of for words_of in own) for word in words])


def test_a_list_sent_in_the_open_names_all_words_of_its_party(recorded: Recorded) -> None:
    folder = recorded("open", 25)
    found = judged(seen(folder), true(folder))
    assert share(found, WHOSE) == share(found, HELD) == share(found, RIGHT) == 1.0
    assert counted(found, WHOSE).of > 20
    assert any(example.exact for example in found.examples)


def test_a_sum_hides_whose_a_word_is_and_not_that_somebody_has_it(recorded: Recorded, parties: Mapping[str, Corpus]) -> None:
    masked, unprotected = recorded("masked", 25), recorded("open", 25)
    found, in_the_open = judged(seen(masked), true(masked)), judged(seen(unprotected), true(unprotected))
    assert counted(found, WHOSE).hits == 0
    assert share(found, RIGHT) == 1.0
    everybody = int((holders(parties, true(masked).vocabulary) == len(PARTIES)).sum())
    assert counted(found, HELD).hits == everybody * len(PARTIES)  # what all have is no secret of one
    assert counted(found, GIVEN_AWAY) == counted(in_the_open, GIVEN_AWAY)
    assert counted(found, GIVEN_AWAY).hits > 20


def test_helpers_take_their_own_words_out_of_the_sum(recorded: Recorded) -> None:
    folder = recorded("masked", 25)
    alone, helped = (judged(seen(folder, helpers), true(folder, helpers)) for helpers in (0, 2))
    assert share(helped, HELD) > share(alone, HELD)
    assert share(helped, RIGHT) > 0.9  # a helper's held-out documents are not taken out
    assert counted(helped, WHOSE).hits == 0  # of three parties, which one has it stays open


def test_a_table_says_in_how_many_parties_each_word_is(recorded: Recorded, parties: Mapping[str, Corpus]) -> None:
    view = seen(recorded("masked", 25))
    (table,) = totals(view)
    found = tabled(table.blocks, 1000, len(PARTIES))
    assert found is not None
    assert (found.parties == holders(parties, found.words)).all()
    assert {1, len(PARTIES)} <= set(found.parties.tolist())
    frequencies = [
        sum(int((parties[name].project(found.words).counts > 0).sum(axis=0)[n]) for name in PARTIES) for n in range(9)
    ]
    assert found.documents[:9].tolist() == frequencies


def test_what_delta_allows_is_said_of_documents_alone() -> None:
    assert ATTACK.allowed is not None
    claimed = Budget(Unit.DOCUMENT, 8.0, 1e-5)
    assert ATTACK.allowed(GIVEN_AWAY, claimed) == 1e-5
    assert ATTACK.allowed(HELD, claimed) == 1.0
