"""Audit plans: the shelf is readable, and every fault of a file has its name and place."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.errors import BadSetting, Misuse, NotFound, UnknownSetting
from securetm.leakage.plans import audit_plan_names, read_audit_plan
from securetm.shelf import shelf

GOOD = (shelf("audits") / "plans" / "gradient_inversion.toml").read_text()


@pytest.mark.parametrize("name", audit_plan_names())
def test_the_shelf_is_sound(name: str) -> None:
    assert read_audit_plan(name).name == name


@pytest.mark.parametrize(
    ("old", "new", "error", "said"),
    [
        ('threat_model = "curious_coordinator"', 'threat_model = "nobody"', NotFound, "threat model"),
        ('adversary    = "coordinator"', 'adversary = "neighbour"', BadSetting, "is none of coordinator, party"),
        ('adversary    = "coordinator"', 'adversary = "party"', BadSetting, "is not required against party"),
        ('"sees only sums"', '"sees nothing"', BadSetting, "is not required against coordinator"),
        ('profiles     = ["open"]', 'profiles = ["shut"]', NotFound, "'shut'"),
        ('profiles     = ["open"]', 'profiles = ["open", "open"]', BadSetting, "twice"),
        ('profiles     = ["open"]', "profiles = []", BadSetting, "must be one of the profiles tried"),
        ('expect_fail  = "open"', "", BadSetting, "expect_fail = .* is missing"),
        ("confidence   = 0.95", "confidence = 1.0", BadSetting, "below 1"),
        ("refuted_from = 0.05", "refuted_from = 5", BadSetting, "between 0 and 1"),
        ("runs = 3", "runs = 0", BadSetting, r"\[effort\]: runs"),
        ("runs = 3", 'runs = "many"', BadSetting, r"\[effort\]: runs"),
        ("[effort]", "[efforts]", UnknownSetting, "efforts"),
    ],
)
def test_each_fault_has_its_name_and_place(tmp_path: Path, old: str, new: str, error: type[Misuse], said: str) -> None:
    assert old in GOOD
    path = tmp_path / "gradient_inversion.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(error, match=said):
        read_audit_plan(path)
