"""Where words come from: a public list, the list of a language, or counts behind noise, and how many documents a word needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from securetm import federate
from securetm.accounting.ledger import Ledger
from securetm.corpus.corpus import Corpus
from securetm.corpus.public_words import frequent_words
from securetm.corpus.tokeniser import Tokeniser
from securetm.errors import BadSetting, Failed, Mistake
from securetm.federation.budget.forecast import needed_by
from securetm.federation.budget.prices import PlannedSpending, calibrated
from securetm.mechanisms.word_selection import WordSelection
from securetm.plans.agreement import agree
from securetm.plans.recommend import plan_from_tables, whole_plan

from ..cli.conftest import securetm
from .conftest import SHARED, small_plan
from .played import Played, make_party
from .staged import Stage

# ---- lists of a language ---------------------------------------------------------------------------------------------------


BUDGETS = ("dp-local", "dp-central", "dp-distributed", "fortress")
PUBLIC_ONLY = ("iftm", "bfv", "ckks")
FEW = {"vocabulary.most_candidates": 500, "vocabulary.min_documents": 2, "vocabulary.max_share": 1.0}


def test_a_list_of_a_language_is_hashed_into_the_agreement_as_a_file_is(tmp_path: Path) -> None:
    def digest(**vocabulary: object) -> bytes:
        given = {f"vocabulary.{name}": value for name, value in {"max_words": 300, **vocabulary}.items()}
        return agree(whole_plan(None, {"profile": "masked", **given})).digest

    path = tmp_path / "words.txt"
    path.write_text("\n".join(frequent_words("en", 300, Tokeniser(), 0.5)), "utf-8")
    assert digest(file="english") == digest(file="en") == digest(file=str(path), source="file") != digest(file="german")
    assert digest(file="english") != digest(file="english+private") != digest(source="joint")


def test_a_list_that_is_named_decides_the_source() -> None:
    choices = {
        name: whole_plan(None, {"profile": profile, **({"vocabulary.file": file} if file else {})}).vocabulary
        for name, (profile, file) in {
            "none": ("dp-central", ""),
            "list": ("dp-central", "english"),
            "both": ("dp-central", "english+private"),
            "public only": ("iftm", ""),
        }.items()
    }
    said = {name: (choice.source, choice.file) for name, choice in choices.items()}
    english = ("file", "english")
    assert said == {"none": ("joint", ""), "list": english, "both": ("joint", "english"), "public only": english}
    with pytest.raises(BadSetting, match="adds words of the parties"):
        whole_plan(
            None,
            {
                "profile": "dp-central",
                "vocabulary.source": "file",
                "origins.vocabulary": "made up",
                "vocabulary.file": "english+private",
            },
        )
    with pytest.raises(BadSetting, match="does not take: leave out"):
        whole_plan(None, {"profile": "iftm", "vocabulary.file": "english+private"})


def test_words_of_the_parties_join_the_public_list(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(["zyzzyva", *SHARED[:5]]), "utf-8")
    settings = {"profile": "masked", "model.n_topics": 3, "training.rounds": 1, "vocabulary.max_words": 12, **FEW}
    listed = {"vocabulary.file": f"{tmp_path / 'words.txt'}+private"}
    federate(five, tmp_path / "run", {**settings, **listed}, comparison=False)
    words = set((tmp_path / "run" / "coordinator" / "vocabulary.txt").read_text().split())
    assert words >= {"zyzzyva", *SHARED[:5]}
    assert len(words - {"zyzzyva", *SHARED[:5]}) in range(6, 13)


def test_a_party_refuses_a_list_without_the_public_words(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(SHARED[:5]), "utf-8")
    plan = small_plan()
    plan = replace(plan, vocabulary=replace(plan.vocabulary, source="joint", file=str(tmp_path / "words.txt"), max_words=2))
    stage = Stage(make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora)))
    stage.says(stage.played.invite())
    stage.refuses(stage.played.adopt(tuple(sorted(SHARED[1:7]))), "WrongAgreement", "vocabulary")
    stage.refuses(stage.played.adopt(tuple(sorted({*SHARED[:5], "one", "two", "three"}))), "BadState", "longer than the plan")
    stage.says(stage.played.adopt(tuple(sorted({*SHARED[:5], "one", "two"}))))


def run_of(profile: str, folder: Path) -> dict[str, object]:
    """A short run on the built-in corpus, with nothing but the profile."""
    said = securetm("run", "--profile", profile, "--rounds", "1", "--no-comparison", "--out", str(folder), "--json")
    assert said.code in (0, 1), said.err  # a model that learned for one round may be worse than a guess
    assert ("frequent words of the language english" in said.err) is (profile in PUBLIC_ONLY)
    return json.loads(said.out)  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("profile", [*BUDGETS, *PUBLIC_ONLY])
def test_every_profile_with_noise_or_keys_runs_with_no_further_argument(profile: str, tmp_path: Path) -> None:
    assert run_of(profile, tmp_path / "run")["rounds"] == 1


# ---- words behind noise ----------------------------------------------------------------------------------------------------


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
    assert str(needed_by(agree(whole_plan(None, DP))).found_from) in str(refusal.value)  # type: ignore[union-attr]
    assert "--vocabulary" in refusal.value.advice()
    assert not (tmp_path / "run").exists()


def test_a_selection_that_found_nothing_names_the_noise(tmp_path: Path) -> None:
    """Each party has documents enough, and no word is in enough of them."""
    with pytest.raises(Failed, match="behind its noise a word needs about") as failure:
        federate(of_sizes(200, 5), tmp_path / "run", DP, comparison=False)
    assert str(needed_by(agree(whole_plan(None, DP))).found_from) in str(failure.value)  # type: ignore[union-attr]
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
