"""Numbers of a masked sum that are one party's own: exact where no other party has the word, and without a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from securetm.auditing.attack import Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.vocabulary import EXACT, ONE, WHOSE_COUNTS, owners
from securetm.auditing.ground_truth import colluding_parties_of, ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.recorded import questions_of, view_of
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder

from .conftest import PARTIES, Recorded, adversary, made_run
from .tried import counted, share

ATTACK = attack_called("sparse_sums")


@pytest.fixture(scope="module")
def counts(parties: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, RunFolder]:
    """Runs of LDA, whose sums are counts."""
    return {profile: _run(tmp_path_factory.mktemp("sparse") / profile, parties, profile) for profile in ("open", "masked")}


def _run(path: Path, parties: Mapping[str, Corpus], profile: str) -> RunFolder:
    tables = {
        "profile": profile,
        "model": {"name": "lda", "n_topics": 4, "sweeps": 1},
        "training": {"rounds": 2, "held_out": 0.1},
        "vocabulary": {"min_documents": 1, "max_share": 1.0, "most_candidates": 1000},
    }
    return made_run(path, parties, tables)


def tried(folder: RunFolder, *, helpers: int = 0, chance: bool = False) -> Score:
    view = replace(
        view_of(folder, replace(adversary(), colludes_with_parties=4), ATTACK, 2),
        insiders=colluding_parties_of(folder, helpers),
    )
    truth = ground_truth_of(folder, questions_of(folder, ATTACK.questions, 2).values())
    truth = replace(truth, helpers=tuple(one.name for one in view.insiders))
    return ATTACK.judge(ATTACK.attack(of_chance(view, 3) if chance else view, {"rounds": 2}), truth)


def test_a_masked_sum_shows_one_partys_counts_and_not_its_name(counts: Mapping[str, RunFolder]) -> None:
    found = tried(counts["masked"])
    assert counted(found, EXACT).of > 50
    assert share(found, EXACT) > 0.5  # the others are words that somebody else has in a document that was held out
    assert share(found, ONE) == 1.0
    assert counted(found, WHOSE_COUNTS).hits == 0


def test_lists_in_the_open_give_the_name_as_well(counts: Mapping[str, RunFolder]) -> None:
    found = tried(counts["open"])
    assert share(found, ONE) == 1.0
    assert counted(found, WHOSE_COUNTS) == counted(found, EXACT)
    assert counted(found, WHOSE_COUNTS).hits == counted(tried(counts["masked"]), EXACT).hits
    assert found.examples[0].exact


def test_where_all_others_help_the_name_is_known(counts: Mapping[str, RunFolder]) -> None:
    found = tried(counts["masked"], helpers=4)
    assert counted(found, WHOSE_COUNTS) == counted(found, EXACT)
    assert share(found, WHOSE_COUNTS) > 0.5


@pytest.mark.parametrize("helpers", [0, 2])
def test_no_word_of_a_helper_is_taken_for_another_partys(counts: Mapping[str, RunFolder], helpers: int) -> None:
    folder = counts["masked"]
    view = replace(view_of(folder, adversary(), ATTACK, 2), insiders=colluding_parties_of(folder, helpers))
    known = owners(view)
    assert set(known.values()) == {""}
    for name in PARTIES[len(PARTIES) - helpers :]:
        held = ground_truth_of(folder, ()).held[name]
        used = {word for word, n in zip(view.vocabulary(), held.sum(axis=0), strict=True) if n}
        assert not used & set(known)


def test_a_gradients_empty_rows_tell_who_used_a_word(recorded: Recorded) -> None:
    found = tried(recorded("masked", 25))
    assert share(found, ONE) == 1.0
    assert counted(found, EXACT).hits > 20
    assert counted(found, WHOSE_COUNTS).hits == 0
