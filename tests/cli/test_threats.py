"""`securetm threats`, `check`, `explain` and `compare-profiles`: what is required, who claims it, and what has a gap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from securetm.auditing.bindings import bound_to
from securetm.auditing.evidence import Evidence, to_keep, write_evidence
from securetm.auditing.plans import read_audit_plan
from securetm.auditing.record import Finding, Measured
from securetm.plans.profiles import read_profile

from ..effort import worked
from ..quick_part import quick
from ..reports.audits import finding
from .conftest import securetm
from .test_cli import told

SUMS = "sees only sums"


def result(profile: str, **changes: Any) -> Finding:
    """What a trial of the plan `quick` would have left behind."""
    trial = read_audit_plan("quick").trials[0]
    facts: dict[str, Any] = {
        "profile": profile,
        "title": "Documents from one party's gradient",
        "measured": Measured(trial.measure, "document", 0.0, 0.0, 0.012, 0.988, 0, 300, 0.0),
        "verdict": "not refuted",
        "why": "this attack, at this effort, reached 0",
        "baseline": False,
        "claimed": True,
        "sees": ("request", "vocabulary", "sealed"),
        "kept": "2026-11-21",
        "chance": None,
        "bound": bound_to(trial, profile),
    }
    return finding(**{**facts, **changes})


def kept(folder: Path, profile: str, *results: Finding, plan: str = "quick") -> Path:
    """A folder of evidence with these results."""
    write_evidence(Evidence(profile, "prodlda", plan, tuple(map(to_keep, results))), folder)
    return folder


def threats(profile: str, folder: Path, *more: str) -> Any:
    return securetm("threats", profile, "--evidence", str(folder), "--json", *more)


def only_claim(facts: Any) -> Any:
    coordinator = facts["threat_models"][0]["adversaries"][0]
    assert coordinator["adversary"] == "coordinator"
    return coordinator["required"][0]


def test_a_claim_that_was_refuted_exits_1(tmp_path: Path) -> None:
    broken = result(
        "masked", verdict="refuted", measured=Measured("documents", "document", 1.0, 0.99, 1.0, 0.99, 300, 300, 0.0)
    )
    said = threats("masked", kept(tmp_path, "masked", broken))
    assert said.code == 1
    assert said.json["refuted_claims"] == [SUMS]
    assert only_claim(said.json)["result"] == "refuted"
    assert "Broken by our own attacks" in said.err


def test_what_nobody_claims_cannot_be_refuted(tmp_path: Path) -> None:
    figures = Measured("documents", "document", 1.0, 0.99, 1.0, 0.99, 300, 300, 0.0)
    shown = result("open", verdict="refuted", claimed=False, baseline=True, measured=figures)
    said = threats("open", kept(tmp_path, "open", shown))
    assert said.code == 0, said.err
    accepted = {one["claim"]: one for one in said.json["threat_models"][0]["accepts"]}
    assert accepted[SUMS]["result"] == "refuted"


@pytest.mark.parametrize(
    "profile", quick(["dp-distributed", "fortress", "dp-local", "masked", "open"], "dp-distributed", "masked")
)
def test_what_a_profile_promises_is_nowhere_said_to_be_accepted_to_fail(profile: str, tmp_path: Path) -> None:
    """`private_answers` would do without “sees only sums”, which `dp-distributed` promises."""
    facts = securetm("explain", profile, "--json").json
    promised = {one.partition(",")[0].partition(" per ")[0] for view in facts["views"] for one in view["protected_by"]}
    assert not promised & {one["claim"] for one in facts["accepted"]}
    told = threats(profile, tmp_path).json["threat_models"][0]["accepts"]
    assert {one["claim"] for one in told if one["promised"]} == promised & {one["claim"] for one in told}
    assert (profile == "dp-distributed") <= (SUMS in {one["claim"] for one in told if one["promised"]})
    shown = " ".join(threats(profile, tmp_path).err.split())
    assert ("Not required, and promised by this profile all the same" in shown) is any(one["promised"] for one in told)


def test_a_required_claim_that_is_not_made_exits_1(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text(UNSOUND, "utf-8")
    said = threats(str(profile), tmp_path)
    assert said.code == 1
    assert only_claim(said.json)["gap"].startswith("nothing promises it")
    assert only_claim(said.json)["claimed_by"] == []
    assert "GAP" in said.err


UNSOUND = """
name = "mine"
title = "No protection against somebody who is feared"
threat_model = "curious_coordinator"
aggregation = "plain"
vocabularies = ["file"]
"""


def test_stale_results_are_said_to_be(tmp_path: Path) -> None:
    old = result("masked", bound={**result("masked").attempt.bound, "attack": "0" * 64})
    said = threats("masked", kept(tmp_path, "masked", old))
    (tried,) = only_claim(said.json)["tried_by"]
    assert tried["stale"] == ["the attack gradient_inversion changed since"]
    assert "stale" in said.err


def test_eighty_letters_are_enough_and_what_changed_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name in one piece, the attack's sentence beside it, and below it how that ended."""
    monkeypatch.setenv("COLUMNS", "80")
    long = "vocabulary_leakage"
    old = result(
        "masked", attack=long, title="Whose words", bound={**result("masked").attempt.bound, "attack": "0", "corpus": "0"}
    )
    lines = [
        line.split("│")[2].strip() for line in threats("masked", kept(tmp_path, "masked", old)).err.splitlines() if long in line
    ]
    assert lines[0] == f"{long}, prodlda: Whose words"
    words = " ".join(threats("masked", tmp_path).err.replace("│", " ").split())
    assert words.count("stale:") == 1
    assert words.count("changed since") == 1
    assert max(map(len, threats("masked", tmp_path).err.splitlines())) <= 80


def test_an_attack_with_more_eyes_or_helpers_says_nothing_of_a_weaker_adversary(tmp_path: Path) -> None:
    """Totals say nothing of a coordinator that sees none; an empty channel makes no difference."""
    stronger = result("bfv", sees=("request", "sealed", "total"))
    helped = result("bfv", helpers=1, sees=("request", "sealed"))
    alike = result("bfv", sees=("request", "answer", "sealed"))
    for tried, counts in ((stronger, False), (helped, False), (alike, True)):
        claim = only_claim(threats("bfv", kept(tmp_path, "bfv", tried)).json)
        assert bool(claim["tried_by"]) is counts


def test_words_and_documents_are_different_units(tmp_path: Path) -> None:
    private = "the total is differentially private"
    seen = {"sees": ("model", "vocabulary"), "adversary": "model reader", "claim": private}
    of_documents = result("iftm", threat_model="model_reader", **seen)
    of_words = result("iftm", threat_model="word_occurrences", **seen)
    facts = threats("iftm", kept(tmp_path, "iftm", of_documents, of_words)).json
    reader = next(one for one in facts["threat_models"][0]["adversaries"] if one["adversary"] == "model reader")
    (claim,) = reader["required"]
    assert claim["unit"] == "word"
    assert len(claim["tried_by"]) == 1


def test_no_more_and_no_fewer_parties_are_asked_about_than_a_profile_bears(tmp_path: Path) -> None:
    def too_many() -> None:
        told(threats("masked", tmp_path, "--parties", "4097"), 2, "is 4097; it must be at most 4,096")
        told(threats("dp-central", tmp_path, "--parties", "100000"), 2, "is 100000; it must be at most 4,096")

    assert worked(too_many) < 20  # a graph between so many parties takes minutes
    assert threats("open", tmp_path, "--parties", "100000").json["parties"] == 100_000
    told(threats("open", tmp_path, "--parties", "1"), 2, "--parties")
    needs = read_profile("masked").minimum_parties
    told(threats("masked", tmp_path, "--parties", str(needs - 1)), 2, f"fewer than the {needs} that profile 'masked' needs")
    assert threats("masked", tmp_path).json["parties"] == max(needs, 5)


def test_a_result_says_which_settings_it_was_made_with(tmp_path: Path) -> None:
    """Two results of one attack that only the width of a layer tells apart are not shown as one."""
    wide = next(trial for trial in read_audit_plan("full").trials if trial.run.get("model.hidden") == 400)
    figures = Measured(wide.measure, "document", 0.91, 0.88, 0.94, 0.988, 364, 400, 0.0)
    told = {"attack": wide.attack, "claim": wide.claim, "measured": figures, "verdict": "refuted", "claimed": False}
    found = result("masked", **told, sees=("total",), bound=bound_to(wide, "masked"))
    said = threats("masked", kept(tmp_path, "masked", found, plan="full"))
    accepted = next(one for one in said.json["threat_models"][0]["accepts"] if one["claim"] == wide.claim)
    (tried,) = accepted["tried_by"]
    assert tried["settings"]["model.hidden"] == 400
    assert "hidden = 400" in " ".join(said.err.replace("│", " ").split())


# ---- check -----------------------------------------------------------------------------------------------------------------


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


# ---- profiles side by side -------------------------------------------------------------------------------------------------


def test_two_profiles_fit_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = securetm("compare-profiles", "masked", "dp-distributed")
    assert said.code == 0
    assert max(map(len, said.out.splitlines())) <= 80
    assert "…" not in said.out
    assert said.out == securetm("explain", "masked", "dp-distributed").out


def test_what_differs_is_marked() -> None:
    rows = {row["question"]: row for row in securetm("compare-profiles", "masked", "fortress", "--json").json["rows"]}
    assert rows["Who sees the model?"]["differs"] is False
    assert rows["May the coordinator lie?"]["answers"] == {"masked": "no: all follow the protocol", "fortress": "yes"}
    assert "epsilon = 3" in rows["What tells the model of one document?"]["answers"]["fortress"]
