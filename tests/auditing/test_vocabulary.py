"""Words of one party and of one document: out of lists, tables and sums by which words are agreed on or a model learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from securetm.auditing.attack import GroundTruth, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.vocabulary import (
    EXACT,
    GIVEN_AWAY,
    HELD,
    RIGHT,
    WHOSE,
    WHOSE_COUNTS,
    AskedWords,
    owners,
    surely_there,
)
from securetm.auditing.ground_truth import colluding_parties_of, ground_truth_of
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.views import AdversaryView, ReadVector, RoundQuestion
from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.federation.questions import JOINT
from securetm.models.questions.word_sketch import packed
from securetm.models.questions.word_sums import CELLS, OPEN, WordSums, bits_of, opening
from securetm.testing.query_laws import summed

from .conftest import PARTIES, Recorded, adversary, made_run, plan_tables
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


def test_what_delta_allows_is_said_of_documents_alone() -> None:
    assert ATTACK.allowed is not None
    claimed = Budget(Unit.DOCUMENT, 8.0, 1e-5)
    assert ATTACK.allowed(GIVEN_AWAY, claimed) == 1e-5
    assert ATTACK.allowed(HELD, claimed) == 1.0


# ---- numbers of a masked sum that are one party's own ----------------------------------------------------------------


SPARSE = attack_called("sparse_sums")


@pytest.fixture(scope="module")
def counts(parties: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, RunFolder]:
    """Runs of LDA, whose sums are counts."""
    tables = plan_tables("masked", {"name": "lda", "n_topics": 4, "sweeps": 1}, 2)
    return {"masked": made_run(tmp_path_factory.mktemp("sparse") / "run", parties, tables)}


def sparse(folder: RunFolder, *, helpers: int = 0) -> Score:
    view = replace(
        view_of(folder, replace(adversary(), colludes_with_parties=4), SPARSE, 2),
        insiders=colluding_parties_of(folder, helpers),
    )
    truth = ground_truth_of(folder, questions_of(folder, SPARSE.questions, 2).values())
    truth = replace(truth, helpers=tuple(one.name for one in view.insiders))
    return SPARSE.judge(SPARSE.attack(view, {"rounds": 2}), truth)


def test_where_all_others_help_the_name_is_known(counts: Mapping[str, RunFolder]) -> None:
    found = sparse(counts["masked"], helpers=4)
    assert counted(found, WHOSE_COUNTS) == counted(found, EXACT)
    assert share(found, WHOSE_COUNTS) > 0.5


@pytest.mark.parametrize("helpers", [0, 2])
def test_no_word_of_a_helper_is_taken_for_another_partys(counts: Mapping[str, RunFolder], helpers: int) -> None:
    folder = counts["masked"]
    view = replace(view_of(folder, adversary(), SPARSE, 2), insiders=colluding_parties_of(folder, helpers))
    known = owners(view)
    assert set(known.values()) == {""}
    for name in PARTIES[len(PARTIES) - helpers :]:
        held = ground_truth_of(folder, ()).held[name]
        used = {word for word, n in zip(view.vocabulary(), held.sum(axis=0), strict=True) if n}
        assert not used & set(known)


# ---- words of one document alone -------------------------------------------------------------------------------------


FREQUENT = ("river", "lake", "stone", "bridge", "water", "court", "judge", "window", "garden", "winter")


def _document(rng: np.random.Generator, number: int) -> str:
    """Some frequent English words, and sometimes a code that stands nowhere else."""
    words = rng.choice(FREQUENT, 5)
    return " ".join([*words, *([f"code{number:04d}x"] if number % 3 == 0 else [])])


@pytest.fixture(scope="module")
def coded() -> Mapping[str, Corpus]:
    rng = np.random.default_rng(1)
    texts = {name: [_document(rng, 1000 * at + n) for n in range(120)] for at, name in enumerate(PARTIES)}
    return {name: Corpus.from_strings(own, name=name) for name, own in texts.items()}


@pytest.mark.parametrize(("noise", "told"), [(0.01, True), (3.0, False)])
def test_only_noise_in_sums_of_words_hides_them(noise: float, told: bool, coded: Mapping[str, Corpus]) -> None:
    """The first sum is about all words. In the second none of these is open, so it says nothing of them."""
    rng, whole = np.random.default_rng(0), Corpus.concat(list(coded.values()))
    codes = tuple(word for word in whole.vocabulary if word.startswith("code"))
    asked = AskedWords((*codes, *(code[::-1] for code in codes)), FREQUENT)
    sums = [
        ReadVector(RoundQuestion(serial, JOINT, serial, state, WordSums().terms), "", {"cells": cells})
        for serial, state in enumerate(({}, opening(bits_of(packed(FREQUENT)))))
        for cells in (summed(WordSums(state.get(OPEN)), whole, radius=1.0) + rng.normal(0, noise, CELLS),)
    ]
    found = surely_there(asked, sums)
    assert (found[: len(codes)].mean() > 0.9) == told
    assert found[: len(codes)].mean() in (pytest.approx(1.0, abs=0.05), pytest.approx(0.0, abs=0.05))
    assert found[len(codes) :].mean() < 0.02
