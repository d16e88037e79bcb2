"""Profiles: what each promises and needs, and which one is chosen for which answers."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, islice, product
from pathlib import Path

import pytest

from securetm.answers.route import compile_route
from securetm.contracts import Block, Claim, Cohort, Noised, Profile, Terms, Unit
from securetm.errors import Mismatch, Misuse, NotFound
from securetm.federation.soundness import check, check_floor, gaps_of_questions
from securetm.mechanisms.word_selection import WORDS_PRIVATE
from securetm.plans.agreement import agree
from securetm.plans.profile_choice import Answers, fitting, gaps_asked, threats_asked
from securetm.plans.profiles import claims_of, cohort_of, profile_names, read_profile
from securetm.plans.recommend import plan_from_tables
from securetm.reports.choosing import PlanNotes, plan_of
from securetm.reports.committed_costs import by_cost
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


# ---- which one is chosen ---------------------------------------------------------------------------------------------------


LOOKS = ("coordinator", "party", "reader")
HIDE = ("organisation", "document", "total")
BREAKS = ("coordinator", "party")
PRIVATE = "the total is differentially private"
_profile = cache(read_profile)
_PLACES = {name: by_cost(read_profile(name)) for name in profile_names()}


def subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, n) for n in range(1, len(names) + 1))


def every_fear(parties: int, colluding: tuple[int, ...] = (0, 1, 2, 3), each: tuple[int, ...] = (0, 5)) -> Iterator[Answers]:
    """Every combination of fears. Sorting is as exploring, which one combination shows."""
    for purpose in ("explore", "sort", "publish"):
        yield Answers(("nobody",), parties, 100_000, purpose, 0)
    few = [number for number in colluding if number < parties]
    found = product(subsets(LOOKS), subsets(HIDE), (("nobody",), *subsets(BREAKS)), few, each, ("explore", "publish"))
    for looks, hide, breaks, helpers, per_person, purpose in found:
        yield Answers(looks, parties, 100_000, purpose, per_person, hide, breaks, helpers)


def chosen(answers: Answers) -> str | None:
    return fitting(answers, _PLACES.__getitem__)


@cache
def claims(name: str, parties: int) -> frozenset[Claim]:
    return claims_of(_profile(name), cohort_of(_profile(name), tuple(map(str, range(parties)))))


def holds(name: str, answers: Answers, what: str, against: str, helpers: int, unit: Unit | None = None) -> bool:
    made = claims(name, answers.parties)
    return any((c.what, c.against, c.unit) == (what, against, unit) and c.colluding >= helpers for c in made)


def protects(profile: Profile, answers: Answers) -> bool:
    """Written down once more, by the claims alone: what each answer asks for."""
    looks, hide, breaks, k = {*answers.looks, *answers.breaks} - {"nobody"}, answers.hide, answers.breaks, answers.colluding
    if answers.purpose == "publish" and looks:
        looks.add("reader")
    unit = Unit.PERSON if answers.per_person > 1 else Unit.DOCUMENT
    name, wanted = profile.name, []
    if "total" in hide:
        wanted += [profile.aggregation.opened_by == "parties", answers.purpose != "publish"]
        looks.add("coordinator")
    if "coordinator" in looks:
        honest = [] if "document" in hide and "coordinator" not in breaks and len(hide) == 1 else ["sees only sums"]
        lying = ["cannot speak for a party", "cannot show parties different cohorts"] if "coordinator" in breaks else []
        wanted += [holds(name, answers, what, "coordinator", k) for what in (*honest, *lying)]
        wanted += ["document" not in hide or holds(name, answers, PRIVATE, "coordinator", k, unit)]
    if "party" in looks and ("document" in hide or ("party" in breaks and "organisation" in hide)):
        wanted.append(holds(name, answers, PRIVATE, "party", max(k - 1, 0), unit))
    if "reader" in looks and "document" in hide:
        wanted.append(holds(name, answers, PRIVATE, "model reader", k, unit))
    plays_all = answers.parties == 1 and not looks  # one organisation, from which nobody has to be kept
    return all(wanted) and (plays_all or answers.parties >= profile.minimum_parties)


@pytest.mark.parametrize("parties", [3, 5])
def test_the_chosen_profile_protects_against_all_that_was_asked(parties: int) -> None:
    check_choice(every_fear(parties, (0, 2), (5,)))


@pytest.mark.slow
@pytest.mark.parametrize("parties", [1, 2, 3, 4, 5, 7])
def test_it_does_for_every_combination(parties: int) -> None:
    check_choice(every_fear(parties))


def check_choice(every: Iterator[Answers]) -> None:
    for answers in every:
        name = chosen(answers)
        assert name is None or protects(_profile(name), answers), answers
        cheaper = [other for other in _PLACES if name is None or _PLACES[other] < _PLACES[name]]
        alone = "organisation" in answers.hide and answers.parties - max(answers.colluding, "party" in answers.lookers) < 2
        assert alone or not any(protects(_profile(other), answers) for other in cheaper), answers


def more_fears(answers: Answers) -> Iterator[Answers]:
    """One fear more: somebody else looks, or for something else, or lies, or colludes, or persons have more documents."""
    for name, every in (("looks", LOOKS), ("hide", HIDE), ("breaks", BREAKS)):
        given = tuple(one for one in getattr(answers, name) if one != "nobody")
        yield from (replace(answers, **{name: (*given, one)}) for one in every if one not in given)
    if answers.colluding + 1 < answers.parties:
        yield replace(answers, colluding=answers.colluding + 1)
    yield replace(answers, purpose="publish")
    yield replace(answers, per_person=answers.per_person + 2)


def test_one_fear_more_never_yields_a_weaker_profile() -> None:
    check_more(islice(every_fear(5), 0, None, 41))  # 41 shares no factor with the numbers of answers


@pytest.mark.slow
@pytest.mark.parametrize("parties", [3, 5, 7])
def test_one_fear_more_never_does_for_any_combination(parties: int) -> None:
    check_more(every_fear(parties))


def check_more(every: Iterator[Answers]) -> None:
    for answers in every:
        if answers.looks == ("nobody",):
            continue
        before, threats = chosen(answers), threats_asked(answers)
        for other in more_fears(answers):
            after = chosen(other)
            assert after is None or (before is not None and not gaps_asked(after, answers, threats)), (answers, other)
            assert after is None or before is None or _PLACES[after] >= _PLACES[before]
            one, two = _profile(before or "open").budget, _profile(after or "fortress").budget
            assert one is None or two is None or two.epsilon <= one.epsilon


def test_every_profile_but_one_can_be_chosen() -> None:
    """`iftm` hides single words at a higher cost in quality than others hide documents at."""
    fears = chain.from_iterable(every_fear(parties, (0, 3), (5,)) for parties in (2, 3, 5))
    assert {chosen(answers) for answers in fears} - {None} == {*profile_names()} - {"iftm", "ckks"}


@pytest.mark.parametrize("name", sorted({*profile_names()} - {"iftm", "ckks"}))
@pytest.mark.parametrize("per_person", [0, 1, 6])
def test_the_plan_of_every_reachable_answer_is_sound(name: str, per_person: int) -> None:
    answers = Answers(("party",), 5, 100_000, "sort", per_person, ("document",))
    found, text = plan_of(answers, read_profile(name), PlanNotes())
    assert plan_from_tables(tomllib.loads(text), "plan.toml") == found.plan
    agreement = agree(found.plan)
    check_floor(agreement, 5)
    assert not gaps_of_questions(agreement, 5)
    assert agreement.budget is None or agreement.budget.unit is answers.unit
