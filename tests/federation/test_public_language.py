"""Runs whose list of words is a language's: with no further argument, in the agreement, and with words that parties add."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from securetm import federate
from securetm.corpus.corpus import Corpus
from securetm.corpus.public_words import frequent_words
from securetm.corpus.tokeniser import Tokeniser
from securetm.errors import BadSetting
from securetm.plans.agreement import agree
from securetm.plans.recommend import read_plan

from ..cli.conftest import securetm
from .conftest import SHARED, small_plan
from .played import Played, make_party
from .staged import Stage

BUDGETS = ("dp-local", "dp-central", "dp-distributed", "fortress")
PUBLIC_ONLY = ("iftm", "bfv", "ckks")
FEW = {"vocabulary.most_candidates": 500, "vocabulary.min_documents": 2, "vocabulary.max_share": 1.0}


def test_a_list_of_a_language_is_hashed_into_the_agreement_as_a_file_is(tmp_path: Path) -> None:
    def digest(**vocabulary: object) -> bytes:
        given = {f"vocabulary.{name}": value for name, value in {"max_words": 300, **vocabulary}.items()}
        return agree(read_plan(None, {"profile": "masked", **given})).digest

    path = tmp_path / "words.txt"
    path.write_text("\n".join(frequent_words("en", 300, Tokeniser(), 0.5)), "utf-8")
    assert digest(file="english") == digest(file="en") == digest(file=str(path), source="file") != digest(file="german")
    assert digest(file="english") != digest(file="english+private") != digest(source="joint")


def test_a_list_that_is_named_decides_the_source() -> None:
    choices = {
        name: read_plan(None, {"profile": profile, **({"vocabulary.file": file} if file else {})}).vocabulary
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
        read_plan(
            None,
            {
                "profile": "dp-central",
                "vocabulary.source": "file",
                "origins.vocabulary": "made up",
                "vocabulary.file": "english+private",
            },
        )
    with pytest.raises(BadSetting, match="does not take: leave out"):
        read_plan(None, {"profile": "iftm", "vocabulary.file": "english+private"})


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
    stage.party.store.close()


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
