"""Threat models: the shelf is readable, every fault of a file has its name and place, and gaps are what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.contracts import Claim, Unit
from securetm.errors import BadSetting, Misuse, NotFound
from securetm.resources import data_folder
from securetm.threats import CHANNELS, MANY_HELPERS, RISKS, gaps, read_threat_model, threat_model_names

GOOD = """
name = "mine"
title = "A test"
[[adversary]]
name = "coordinator"
behaviour = "active"
sees = ["sealed", "total"]
colludes_with_parties = 2
[[requires]]
against = "coordinator"
claim = "sees only sums"
because = "of this"
[[accepts]]
claim = "slow"
reason = "no hurry"
[[out_of_scope]]
risk = "fire"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", threat_model_names())
def test_the_shelf_is_sound(name: str) -> None:
    model = read_threat_model(name)
    assert model.name == name
    assert {channel for adversary in model.adversaries for channel in adversary.sees} <= set(CHANNELS)
    assert model.out_of_scope  # every one says what it leaves out
    listed = (data_folder("threat_models") / "README.md").read_text()
    assert all(f"**{wanted.claim.what}**" in listed for wanted in model.requires)
    assert f"`{name}`" in listed


def test_every_risk_that_has_a_name_is_on_the_shelf() -> None:
    each = [risk for name in threat_model_names() for risk in read_threat_model(name).out_of_scope]
    assert {risk.name for risk in each if risk.name} == set(RISKS)
    assert {risk.name for risk in each if "more than two parties" in risk.risk} == {MANY_HELPERS}


@pytest.mark.parametrize(
    ("old", "new", "error", "said"),
    [
        ('title = "A test"', "", BadSetting, "`title` in mine.toml is missing"),
        ('title = "A test"', 'titel = "A test"', NotFound, "titel"),
        ('name = "mine"', 'name = "yours"', BadSetting, "must be the name of its file"),
        ("colludes_with_parties = 2", "colludes = 2", NotFound, "number 1 called 'colludes'"),
        ("colludes_with_parties = 2", "colludes_with_parties = -1", BadSetting, "must be at least 0"),
        ('"sealed", "total"', '"everything"', BadSetting, "'everything'; it must be one of request"),
        ('behaviour = "active"', 'behaviour = "evil"', BadSetting, "must be one of honest-but-curious, active"),
        ('against = "coordinator"', 'against = "nobody"', BadSetting, r"`against` in .*\[\[requires\]\] number 1 is 'nobody'"),
        ('because = "of this"', 'because = "of this"\nunit = "byte"', BadSetting, "'byte'; it must be one of word"),
        ('risk = "fire"', 'danger = "fire"', NotFound, r"\[\[out_of_scope\]\] number 1"),
        ('risk = "fire"', 'risk = "fire"\nname = "flood"', BadSetting, "'flood'; it must be one of more than two helpers"),
        (
            "[[accepts]]",
            '[[adversary]]\nname = "coordinator"\nbehaviour = "active"\nsees = []\n[[accepts]]',
            BadSetting,
            "twice",
        ),
    ],
)
def test_each_fault_has_its_name_and_place(tmp_path: Path, old: str, new: str, error: type[Misuse], said: str) -> None:
    assert old in GOOD
    with pytest.raises(error, match=said) as caught:
        read_threat_model(written(tmp_path, GOOD.replace(old, new)))
    assert caught.value.advice()


SUMS = Claim("sees only sums", "coordinator", 2)


@pytest.mark.parametrize(
    ("claim", "met"),
    [
        (SUMS, True),
        (Claim("sees only sums", "coordinator", 3), True),
        (Claim("sees only sums", "coordinator", 2, Unit.DOCUMENT), True),
        (Claim("sees only sums", "coordinator", 1), False),
        (Claim("sees only sums", "party", 5), False),
        (Claim("sees nothing", "coordinator", 5), False),
    ],
)
def test_a_requirement_is_met_by_the_same_claim_against_enough(claim: Claim, met: bool) -> None:
    assert (gaps(read_threat_model("curious_coordinator"), frozenset({claim})) == ()) is met


def test_a_required_unit_is_not_met_by_another(tmp_path: Path) -> None:
    model = read_threat_model(written(tmp_path, GOOD.replace('because = "of', 'unit = "person"\nbecause = "of')))
    assert gaps(model, {Claim("sees only sums", "coordinator", 2, Unit.DOCUMENT)})
    assert not gaps(model, {Claim("sees only sums", "coordinator", 2, Unit.PERSON)})


PRIVATE = "the total is differentially private"


def by_unit(unit: Unit) -> frozenset[Claim]:
    return frozenset(Claim(PRIVATE, who, 4, unit) for who in ("coordinator", "party", "model reader"))


@pytest.mark.parametrize("name", ["private_answers", "hostile_coordinator", "model_reader"])
def test_noise_on_single_words_does_not_meet_what_is_asked_for_documents(name: str) -> None:
    """A requirement without a unit means a whole document at least."""
    missing = {gap.adversary: gap for gap in gaps(read_threat_model(name), by_unit(Unit.WORD)) if gap.claim == PRIVATE}
    assert len(missing) >= 2
    for gap in missing.values():
        assert gap.reason.startswith("it is promised per word only, and not per document, and")
        assert gap.hint
    assert not [gap for gap in gaps(read_threat_model(name), by_unit(Unit.DOCUMENT)) if gap.claim == PRIVATE]


def test_what_is_asked_for_words_is_met_by_noise_on_words() -> None:
    model = read_threat_model("word_occurrences")
    assert gaps(model, by_unit(Unit.WORD)) == ()
    assert len(gaps(model, frozenset())) == 3
    few = frozenset(Claim(PRIVATE, claim.against, 1, Unit.WORD) for claim in by_unit(Unit.WORD))
    assert [gap.adversary for gap in gaps(model, few)] == ["coordinator"]
