"""What a role agrees on: it reads its plan, profile and lists once, and agrees on what a simulation of the same plan does."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from securetm.contracts import Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Mistake
from securetm.federation.folder import begin
from securetm.federation.soundness import agreed_apart, check_plan, check_survivors
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.plans.profiles import TooFewForProfile, cohort_of, profile_names, read_profile
from securetm.plans.recommend import plan_from_tables, whole_plan
from securetm.plans.schema import DEFAULT_MODEL, MODEL_UNDER_BUDGET, Plan
from securetm.resources import named_toml

from ..quick_part import quick
from .conftest import small_plan
from .played import Played, make_party
from .private import private_plan

WORDS = ("boat", "city", "court", "day", "lake", "law", "matrix", "river", "vector", "water")


def own_profile(name: str, folder: Path) -> Path:
    """A profile that comes with us, as a file that somebody may edit."""
    path = folder / "own.toml"
    path.write_text(named_toml("protocols", name, below="profiles", kind="profile").read_text("utf-8"), "utf-8")
    return path


def test_party_and_coordinator_go_on_under_what_they_agreed(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    path = own_profile("open", tmp_path)
    plan = small_plan(profile=str(path))
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    assert played.send(party, played.invite()) == wire.Accepted()
    path.write_text(path.read_text("utf-8").replace("minimum_documents = ", "minimum_documents = 9999"), "utf-8")
    assert agree(plan).profile.digest != party.agreement.profile.digest
    assert played.send(party, played.adopt(WORDS)) == wire.Accepted()
    assert isinstance(played.send(party, played.ask("train", played.fresh())), wire.Accepted)
    path.unlink()
    assert isinstance(played.send(party, played.ask("train", played.fresh(), number=1)), wire.Accepted)
    assert played.send(party, played.invite()) == wire.Accepted()


@pytest.mark.parametrize("name", profile_names())
def test_an_agreement_is_what_its_files_say(name: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("\n".join(WORDS), "utf-8")
    source: dict[str, Any] = {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": str(words)}
    allowed = "file" in read_profile(name).vocabularies
    agreement = agree(small_plan(profile=name, **(source if allowed else {})))
    assert agreement.profile == read_profile(name, unit=agreement.unit if agreement.unit is not Unit.WORD else Unit.DOCUMENT)
    assert agreement.budget == agreement.profile.budget
    assert agreement.words == (WORDS if allowed else None)
    again = pickle.loads(pickle.dumps(agreement))
    assert (again, again.digest) == (agreement, agreement.digest)
    assert replace(agreement, words=("other", "words")).digest != agreement.digest


# ---- a role on its own -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", quick(["masked", "dp-local", "dp-distributed"], "masked", "dp-distributed"))
def test_it_is_the_agreement_of_a_simulation(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    paid = profile.startswith("dp")
    privacy = {"privacy__unit": "document", "privacy__epsilon": 4.0} if paid else {}
    plan = private_plan(tmp_path, profile, **privacy) if paid else small_plan(profile=profile, model__batch=25)
    simulated = begin(tmp_path / "run", plan, five).agreement
    assert agreed_apart(plan, tuple(five)).digest == simulated.digest
    noise = simulated.plan.privacy.noise
    assert float(f"{noise:.5g}") == noise  # no bit of it hangs on a processor


def test_the_plan_must_say_whom_its_budget_protects(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="profile dp-local") as refused:
        agreed_apart(private_plan(tmp_path, "dp-local", privacy__epsilon=4.0), ("a", "b", "c", "d", "e"))
    assert "[privacy]" in refused.value.advice()


def test_too_few_members_and_strangers_in_the_plan() -> None:
    with pytest.raises(TooFewForProfile):
        agreed_apart(small_plan(profile="masked", model__batch=25), ("a", "b"))
    matched = {"name": "lda", "form": "matched", "n_topics": 3, "topics_at": {"d": 2}}
    with pytest.raises(BadSetting, match="must be one of a, b, c"):
        agreed_apart(small_plan(model=matched), ("a", "b", "c"))


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("listen", "8470", "an address and a port"),
        ("listen", "here:65536", "an address and a port"),
        ("survivors", 0, "must be all, or at least 1"),
        ("survivors", "most", "must be all, or at least 1"),
        ("deadline", 0, "must be above 0"),
        ("patience", -1, "must be above 0"),
        ("grace", 0, "must be above 0"),
        ("metrics", 65536, "must be a port"),
        ("status", -1, "must be a port"),
        ("out", "", "must name a path"),
    ],
)
def test_settings_with_which_nobody_could_be_served(setting: str, value: object, said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        small_plan(**{f"coordinator__{setting}": value})


@pytest.mark.parametrize("profile", ["dp-local", "dp-distributed", "masked", "open"])
@pytest.mark.parametrize("parties", [5, 6, 9])
def test_the_fewest_survivors_that_are_allowed_can_sign_and_sum(profile: str, parties: int, tmp_path: Path) -> None:
    """One fewer could not: its sum is refused, or two sets of as many signers share no party that does not collude."""
    paid = profile.startswith("dp")
    names = tuple(f"party {n}" for n in range(parties))
    plan = private_plan(tmp_path, profile, privacy__unit="document") if paid else small_plan(profile=profile, model__batch=200)
    agreement = agreed_apart(plan, names)
    chosen = agreement.profile

    def works(survivors: int) -> bool:
        cohort = cohort_of(chosen, names)
        apart = 2 * (survivors - 1) - (parties - 1) > chosen.colluding or survivors == parties
        return survivors >= chosen.aggregation.remaining(cohort, parties) and (apart or not paid)

    for survivors in range(1, parties + 1):
        if works(survivors) and survivors >= chosen.minimum_parties:
            check_survivors(agreement, parties, survivors)
        else:
            with pytest.raises(BadSetting, match="must be all, or at least"):
                check_survivors(agreement, parties, survivors)


def test_a_check_of_the_plan_says_that_too(tmp_path: Path) -> None:
    plan = private_plan(tmp_path, "dp-distributed", privacy__unit="document", coordinator__survivors=4)
    with pytest.raises(BadSetting, match="so with 6 parties one may be missing"):
        check_plan(plan, None, 5)
    five_of_six = private_plan(tmp_path, "dp-distributed", privacy__unit="document", coordinator__survivors=5)
    assert check_plan(five_of_six, None, 6) == []


def test_how_a_coordinator_is_operated_is_not_agreed_on() -> None:
    served = small_plan(coordinator__survivors=3, coordinator__listen="[::]:0")
    assert agreed_apart(served, ("a", "b", "c")).digest == agreed_apart(small_plan(), ("a", "b", "c")).digest


# ---- the model where nobody names one --------------------------------------------------------------------------------------


def test_a_plan_that_names_no_model_trains_lda_for_a_hundred_rounds() -> None:
    for plan in (whole_plan(None, {}), plan_from_tables({"model": {"n_topics": 4}}, "a test")):
        assert (plan.model.name, plan.training.rounds) == (DEFAULT_MODEL, 100)
    assert Plan().model.name == DEFAULT_MODEL


@pytest.mark.parametrize("profile", ["dp-central", "dp-distributed", "dp-local", "fortress"])
def test_with_a_budget_it_trains_few_rounds_of_bounded_rows(profile: str) -> None:
    plan = plan_from_tables({"profile": profile}, "a test")
    assert plan.model.name == MODEL_UNDER_BUDGET
    assert plan.model.settings["repeats"] == 1
    assert plan.training.rounds <= 8
    named = plan_from_tables({"profile": profile, "model": {"name": MODEL_UNDER_BUDGET, "repeats": 4}}, "a test")
    assert (named.model.settings["repeats"], named.model.settings["tempering"]) == (4, 0.85)
