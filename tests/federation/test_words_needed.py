"""What is said before a run: how many documents a word needs behind noise, and what the plan spends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from securetm import federate
from securetm.accounting.ledger import Ledger
from securetm.corpus.corpus import Corpus
from securetm.errors import Failed, Mistake
from securetm.federation.budget.forecast import needed_by
from securetm.federation.budget.prices import PlannedSpending, calibrated
from securetm.mechanisms.word_selection import WordSelection
from securetm.plans.agreement import agree
from securetm.plans.recommend import plan_from_tables, read_plan

DP = {"profile": "dp-local", "privacy.epsilon": 8.0, "model.n_topics": 3, "training.rounds": 2}


def of_sizes(documents: int, alike: int) -> Mapping[str, Corpus]:
    """Five parties; the first so many documents of each share three words, all others have words of their own."""
    texts = [" ".join(f"{word}{n if n >= alike else ''}" for word in ("river", "lake", "boat")) for n in range(documents)]
    return {name: Corpus.from_strings([text.replace("0", "zero") for text in texts], name=name) for name in "abcde"}


@pytest.mark.parametrize("noise", [0.5, 2.0, 5.0])
def test_a_word_of_so_many_documents_is_found_and_one_of_far_fewer_is_not(noise: float) -> None:
    selection = WordSelection(words_per_document=30, noise_multiplier=noise, miss=1e-12)
    drawn = np.random.default_rng(0).normal(0, noise * np.sqrt(30), 200_000).round()
    assert (
        0.98 < (selection.found_from + drawn > selection.threshold).mean() < 0.999
    )  # 99 of 100, rounded up to whole documents
    assert (selection.threshold // 2 + drawn > selection.threshold).mean() < 0.001


def test_corpora_in_which_no_word_can_be_found_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"one party has at most 30 documents") as refusal:
        federate(of_sizes(30, 30), tmp_path / "run", DP, comparison=False)
    assert str(needed_by(agree(read_plan(None, DP))).found_from) in str(refusal.value)  # type: ignore[union-attr]
    assert "--vocabulary" in refusal.value.advice()
    assert not (tmp_path / "run").exists()


def test_a_selection_that_found_nothing_names_the_noise(tmp_path: Path) -> None:
    """Each party has documents enough, and no word is in enough of them."""
    with pytest.raises(Failed, match="behind its noise a word needs about") as failure:
        federate(of_sizes(200, 5), tmp_path / "run", DP, comparison=False)
    assert str(needed_by(agree(read_plan(None, DP))).found_from) in str(failure.value)  # type: ignore[union-attr]
    assert "min_documents" not in str(failure.value) + failure.value.advice()


def test_too_few_words_stop_a_run_before_the_rest_of_the_budget_is_spent(tmp_path: Path) -> None:
    """Three words are found; three topics would repeat each other."""
    with pytest.raises(Failed, match="too few words: the selection found 3, and 3 topics need 15") as failure:
        federate(of_sizes(600, 600), tmp_path / "run", DP, comparison=False)
    assert "--topics 1" in failure.value.advice()
    assert "--vocabulary english" in failure.value.advice()
    paths = list((tmp_path / "run" / "ledgers").glob("*.ledger"))
    assert len(paths) == 5
    for path in paths:
        with Ledger.read(path) as ledger:
            assert 0 < ledger.spent().epsilon < DP["privacy.epsilon"] / 2


def spending(profile: str = "dp-central", **vocabulary: str) -> PlannedSpending:
    tables = {"profile": profile, "training": {"rounds": 3}, "vocabulary": {"max_words": 100, **vocabulary}}
    listed = tuple(f"word{n}" for n in range(100)) if vocabulary else None
    budget = {"epsilon": 3.0} if profile.startswith("dp") else {}
    return PlannedSpending(calibrated(agree(plan_from_tables({**tables, "privacy": budget}, "a test"), listed=listed), 5), 5)


def test_the_search_for_words_is_counted_before_the_first_round() -> None:
    """A quarter of epsilon goes to it; a public list costs nothing."""
    found, public = spending(), spending(source="file", file="english")
    at = [found.after(answers) for answers in (0, 1, 3)]
    assert all(one is not None for one in at)
    epsilons = [one["epsilon"] for one in at if one is not None]
    assert 0.5 < epsilons[0] <= 0.751
    assert epsilons == sorted(epsilons)
    assert 2.99 < epsilons[-1] <= 3.0
    assert public.after(0) == {"unit": "document", "epsilon": 0.0, "delta": 1e-5, "budget": 3.0}
