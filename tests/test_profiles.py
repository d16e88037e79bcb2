"""Profiles: those on the shelf are sound, and every mistake in a file of one's own is named with file and place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from securetm.answers.route import compile_route
from securetm.contracts import Block, Cohort, Noised, Terms, Unit
from securetm.errors import Mismatch, Misuse, NotFound
from securetm.federation.soundness import check, gaps_of_questions
from securetm.mechanisms.word_selection import WORDS_PRIVATE
from securetm.plans.agreement import agree
from securetm.plans.profiles import claims_of, cohort_of, profile_names, read_profile
from securetm.plans.recommend import plan_from_tables
from securetm.reports.profiles import explain

GOOD = """\
name = "own"
title = "A profile of one's own"
threat_model = "trusted_coordinator"
aggregation = "plain"
vocabularies = ["union", "file"]
minimum_parties = 3

[[mechanism]]
kind = "shuffled_batches"
"""

SHARED_NOISE = """\
name = "own"
title = "Shares of noise"
threat_model = "private_answers"
aggregation = "masked"
vocabularies = ["joint", "file"]
minimum_parties = 4
threshold_share = 0.8
colluding = 2

[budget]
epsilon = 3.0
delta = 1e-5

[[mechanism]]
kind = "poisson"
rate = 0.1

[[mechanism]]
kind = "clip"
radius = 1.0

[[mechanism]]
kind = "fixed_point"
headroom = 0.02

[[mechanism]]
kind = "noise_shares"
noise_multiplier = 1.0
"""
MISTAKES = {
    "no title": (lambda t: t.replace('title = "A profile of one\'s own"\n', ""), "title", "missing"),
    "misspelt": (lambda t: "minimun_parties = 2\n" + t, "minimun_parties", "no setting"),
    "a text for a number": (lambda t: t.replace("= 3", '= "three"'), "minimum_parties", "whole number"),
    "no party": (lambda t: t.replace("= 3", "= 0"), "minimum_parties", "at least 1"),
    "at least one vocabulary": (lambda t: t.replace('["union", "file"]', "[]"), "vocabularies", "at least one vocabulary"),
    "an unknown vocabulary": (
        lambda t: t.replace('"file"', '"guess"'),
        "vocabularies",
        "one of union, joint, blind, file",
    ),
    "a mechanism without a kind": (lambda t: t.replace('kind = "shuffled_batches"', ""), "kind", "missing"),
    "a mechanism with a setting it has not": (lambda t: t + "rate = 1\n", "rate", "no setting"),
}
BUDGET = "[budget]\nepsilon = 3.0\ndelta = 1e-5\n\n"
UNCOUNTED = {
    "no finite epsilon": (lambda t: t.replace("3.0", "inf"), "epsilon", "a number"),
    "a list of all words": (lambda t: t.replace('"joint"', '"union"'), "vocabularies", "no budget can pay"),
    "noise without a budget": (lambda t: t.replace(BUDGET, ""), "budget", "noise_shares adds noise"),
}
BY_WORD = """\
name = "own"
title = "Words one by one"
threat_model = "word_occurrences"
aggregation = "plain"
vocabularies = ["file"]

[budget]
unit = "word"
epsilon = 8.0
delta = 1e-9

[[mechanism]]
kind = "clip"
radius = 1.0

[[mechanism]]
kind = "fixed_point"

[[mechanism]]
kind = "gaussian"
noise_multiplier = 1.0
"""
MISCOUNTED = {
    "a list of the parties' words": (
        lambda t: t.replace('["file"]', '["joint", "file"]'),
        "vocabularies",
        "must be file alone",
    ),
    "a unit that has no budget": (
        lambda t: t.replace('unit = "word"', 'unit = "sentence"'),
        "unit",
        "must be 'word', or",
    ),
    "a unit that the plan says": (lambda t: t.replace('unit = "word"', 'unit = "document"'), "unit", "as the plan says"),
}


def written(folder: Path, text: str) -> str:
    (folder / "own.toml").write_text(text, encoding="utf-8")
    return str(folder / "own.toml")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_file_and_place(mistake: str, tmp_path: Path) -> None:
    change, place, problem = MISTAKES[mistake]
    assert change(GOOD) != GOOD
    with pytest.raises(Misuse) as refusal:
        read_profile(written(tmp_path, change(GOOD)))
    assert "own.toml" in str(refusal.value)
    assert place in str(refusal.value)
    assert problem in str(refusal.value)
    assert refusal.value.advice()


@pytest.mark.parametrize("mistake", UNCOUNTED)
def test_a_budget_that_nobody_could_count_is_named(mistake: str, tmp_path: Path) -> None:
    change, place, problem = UNCOUNTED[mistake]
    assert change(SHARED_NOISE) != SHARED_NOISE
    assert read_profile(written(tmp_path, SHARED_NOISE)).budget is not None
    with pytest.raises(Misuse, match=problem) as refusal:
        read_profile(written(tmp_path, change(SHARED_NOISE)))
    assert f"the setting `{place}` in own.toml{' [budget]' if 'number' in problem else ''} is " in str(refusal.value)


@pytest.mark.parametrize("mistake", MISCOUNTED)
def test_a_budget_of_words_that_would_cover_something_else_is_named(mistake: str, tmp_path: Path) -> None:
    change, place, problem = MISCOUNTED[mistake]
    assert change(BY_WORD) != BY_WORD
    with pytest.raises(Misuse, match=problem) as refusal:
        read_profile(written(tmp_path, change(BY_WORD)))
    assert f"the setting `{place}` in own.toml" in str(refusal.value)


def terms(unit: Unit) -> Terms:
    return Terms((Block("x", (3,)),), unit=unit, noised=Noised.WHOLE, deviation=1.0)


def test_only_noise_on_words_pays_a_budget_of_words(tmp_path: Path) -> None:
    """A document with noise enough for a document is no promise about a word that stands in several of them."""
    cohort, profile = Cohort(b"", 0, ("a", "b")), read_profile(written(tmp_path, BY_WORD))
    bare = replace(profile, mechanisms=())
    assert compile_route(terms(Unit.WORD), bare, cohort).terms == terms(Unit.WORD)
    with pytest.raises(Mismatch, match="rows of this question are per document"):
        compile_route(terms(Unit.DOCUMENT), bare, cohort)
    with pytest.raises(Mismatch, match="answered exactly"):
        compile_route(replace(terms(Unit.WORD), noised=Noised.NOT), bare, cohort)
    with pytest.raises(Mismatch, match="without noise for single words"):
        compile_route(replace(terms(Unit.WORD), noised=Noised.SHARE), bare, cohort)


@pytest.mark.parametrize("unit", [Unit.DOCUMENT, Unit.PERSON])
def test_noise_on_words_pays_no_budget_of_documents(unit: Unit) -> None:
    bare = replace(read_profile("dp-local", unit=unit), mechanisms=())
    with pytest.raises(Mismatch, match=f"hides no whole {unit.value}"):
        compile_route(terms(Unit.WORD), bare, Cohort(b"", 0, ("a", "b")))


@pytest.mark.parametrize(("aggregation", "colluding", "sound"), [("masked", 2, True), ("bfv", 2, False), ("bfv", 0, True)])
def test_shares_of_noise_need_sums_that_bear_as_many_helpers(
    aggregation: str, colluding: int, sound: bool, tmp_path: Path
) -> None:
    """One party's key opens every answer under a shared key, and each answer holds one share of the noise only."""
    text = SHARED_NOISE.replace("masked", aggregation).replace("colluding = 2", f"colluding = {colluding}")
    plan = plan_from_tables(
        {"profile": written(tmp_path, text), "vocabulary": {"max_words": 50}, "model": {"name": "prodlda"}}, "a test"
    )
    reasons = [gap.reason for gap in gaps_of_questions(agree(plan), 5)]
    assert any("only a share of the noise" in reason for reason in reasons) is not sound


def test_a_profile_is_bound_to_its_content(tmp_path: Path) -> None:
    first = read_profile(written(tmp_path, GOOD)).digest
    assert read_profile(written(tmp_path, "# a remark\n" + GOOD)).digest == first
    assert read_profile(written(tmp_path, GOOD.replace("= 3", "= 4"))).digest != first
    assert read_profile(written(tmp_path, "danger = 'x'\n" + GOOD)).digest != first


# ---- those on the shelf --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_on_the_shelf_is_sound_for_its_own_threat_model(name: str) -> None:
    assert check(name, "prodlda", None, 5) == []
    assert read_profile(name).name == name
    assert explain(name)["gaps"] == []


@pytest.mark.parametrize("name", profile_names())
def test_the_ways_to_a_list_stand_side_by_side_and_those_of_the_profile_are_marked(name: str) -> None:
    profile, lists = read_profile(name), explain(name)["lists"]
    assert [(one["list"], one["noised"]) for one in lists] == [
        *((way, False) for way in ("union", "file", "joint", "blind")),
        *((way, True) for way in ("joint", "blind")),
    ]
    assert sorted(one["list"] for one in lists if one["allowed"]) == sorted(profile.vocabularies)
    assert all(one["noised"] == (profile.budget is not None) for one in lists if one["allowed"] and one["list"] != "file")
    assert all(one["coordinator"] and one["party"] for one in lists)


def test_a_profile_of_public_vocabularies_is_checked_for_the_model_that_was_named(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace('["union", "file"]', '["file"]'))
    assert check(path, "prodlda", None, 5) == []
    with pytest.raises(NotFound, match="no model called 'magic'"):
        check(path, "magic", None, 5)


# ---- models --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "named"), [("dp-central", False), ("dp-distributed", False), ("dp-local", True)])
def test_words_found_in_a_sum_are_protected_as_any_other_total(name: str, named: bool) -> None:
    """Under dp-central the coordinator sees the sum exactly, so nothing may be claimed against it about words."""
    profile = read_profile(name)
    claims = claims_of(profile, cohort_of(profile, tuple("abcde")))
    assert any(claim.what == WORDS_PRIVATE for claim in claims) == named
    if name == "dp-central":
        assert not any("differentially private" in claim.what and claim.against == "coordinator" for claim in claims)
