"""`securetm check` says against whom it checked, and what a profile gives up: "no gap" alone would sound like a guarantee."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.plans.profiles import read_profile

from .conftest import securetm


def test_no_gap_of_a_dangerous_profile_is_told_with_the_danger() -> None:
    said = securetm("check", "open", "--json")
    assert said.code == 0
    assert said.json["danger"] == read_profile("open").danger
    assert said.json["threat_model"] == {"name": "trusted_coordinator", "title": said.json["threat_model"]["title"]}
    words = " ".join(securetm("check", "open").out.split())
    assert read_profile("open").danger in words
    assert "No gap: every claim that the threat model trusted_coordinator requires is made" in words
    assert "A coordinator that may see everything" in words


def test_a_plan_of_more_parties_than_its_documents_suffice_for_has_a_gap(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    text = 'profile = "dp-local"\n[training]\ndocuments = 9000\n[federation]\nparties = {}\n[vocabulary]\nfile = "english"\n'
    plan.write_text(text.format(30_000))
    said = securetm("check", str(plan), "--json")
    assert (said.code, [one["claim"] for one in said.json["gaps"]]) == (1, ["a sum holds enough documents"])
    plan.write_text(text.format(3))
    said = securetm("check", str(plan), "--json")
    assert (said.code, said.json["forecast"].startswith("Forecast, before anything is spent")) == (0, True)


@pytest.mark.parametrize(("profile", "word"), [("masked", "take one where that matters"), ("dp-central", "epsilon bounds")])
def test_what_centres_of_meaning_show_depends_on_the_noise(profile: str, word: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f'profile = "{profile}"\n[model]\nname = "semantic"\n[vocabulary]\nfile = "english"\n')
    shown = " ".join(securetm("check", str(plan)).out.split())
    assert "What centres of meaning show" in shown
    assert word in shown
    assert "trained on texts like these" in shown
    assert securetm("check", profile, "--model", "semantic", "--json").json["centres"]
    assert not securetm("check", profile, "--model", "lda", "--json").json["centres"]


def test_a_plan_is_not_explained_and_its_profile_is_named(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('profile = "dp-local"\n')
    said = securetm("explain", str(plan))
    assert said.code == 2
    assert "is a plan, and no profile" in said.err
    assert "securetm explain dp-local" in said.err


def test_a_number_of_parties_that_is_none_is_told_once(tmp_path: Path) -> None:
    """A plan that names it for the federation alone is not told of a setting of its corpus that it does not have."""
    plan = tmp_path / "plan.toml"
    plan.write_text('profile = "dp-central"\n[federation]\nparties = "three"\n', "utf-8")
    said = securetm("check", str(plan))
    assert said.code == 2
    assert "plan.toml, line 3: the setting `parties` in [federation] is 'three'" in said.err
    assert "[corpus]" not in said.err
