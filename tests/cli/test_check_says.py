"""`securetm check` says against whom it checked, and what a profile gives up: "no gap" alone would sound like a guarantee."""

from __future__ import annotations

from securetm.profiles import read_profile

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


def test_another_threat_model_is_named_with_its_gaps() -> None:
    said = securetm("check", "open", "--threat-model", "curious_coordinator", "--json")
    assert (said.code, said.json["threat_model"]["name"]) == (1, "curious_coordinator")
    assert "curious_coordinator" in said.err
