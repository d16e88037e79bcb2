"""All mistakes of a file are told at once, each with its line and the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.errors import BadSetting, Misuse, NotFound, SettingMistakes
from securetm.plans.party_file import PartyFile
from securetm.plans.profiles import read_profile
from securetm.plans.recommend import read_plan
from securetm.resources import named_toml

PLAN = """\
# a plan with a mistake in every section
sead = 1
profile = "maskd"

[training]
rouns = 5
patience = 0
every = 0

[model]
name = "lda"
topics = 4

[vocabulary]
max_share = 1.5
"""
SAID = [
    "plan.toml, line 2: there is no setting of plan.toml called 'sead'",
    "plan.toml, line 3: there is no profile called 'maskd'",
    "plan.toml, line 6: there is no setting of [training] called 'rouns'",
    "plan.toml, line 7: the setting `patience` in [training] is 0; it must be at least 1",
    "plan.toml, line 8: the setting `every` in [training] is 0; it must be at least 1",
    "plan.toml, line 12: there is no setting of [model] lda called 'topics'",
    "plan.toml, line 15: the setting `max_share` in [vocabulary] is 1.5; it must be above 0 and at most 1",
]
MEANT = ["seed", "masked", "rounds", "", "", "n_topics", ""]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(PLAN, "utf-8")
    return Path("plan.toml")


def told(path: Path, **overrides: object) -> tuple[Misuse, ...]:
    """The mistakes of a plan."""
    with pytest.raises(SettingMistakes) as refused:
        read_plan(path, overrides)
    return refused.value.mistakes


def test_all_mistakes_are_told_in_the_order_of_their_lines(plan: Path) -> None:
    mistakes = told(plan)
    assert list(map(str, mistakes)) == SAID
    for mistake, meant in zip(mistakes, MEANT, strict=True):
        assert mistake.advice().startswith(f"did you mean {meant}? " if meant else "correct ")


def test_what_came_from_the_command_line_has_no_line(plan: Path) -> None:
    (found,) = [one for one in told(plan, **{"training.every": -1}) if "`every`" in str(one)]
    assert str(found) == "the setting `every` in [training] is -1; it must be at least 1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('seed = 1\nprofile = "none.toml"\n', "plan.toml, line 2: the profile's file none.toml does not exist"),
        ("[training]\nrounds = 0\n", "plan.toml, line 2: the setting `rounds`"),
        ("[model]\nname = 'ldaa'\n", "plan.toml, line 2: there is no model called 'ldaa'"),
        ("[model]\nname = 'lda'\nn_topics = 0\n", "plan.toml, line 3: the setting `n_topics` in [model] lda is 0"),
        ("profile = 'open'\n[privacy]\nepsilon = 2.0\n", "plan.toml, line 3: the setting `epsilon` in [privacy]"),
        ("[vocabulary]\nsource = 'file'\n", "plan.toml, line 1: the setting `file` in [vocabulary] is missing"),
        ("[corpus]\n# a comment\nparty = 'x'\n", "plan.toml, line 3: the setting `party` in [corpus]"),
        ("corpus = { sorce = 'x' }\n", "plan.toml, line 1: there is no setting of [corpus] called 'sorce'"),
    ],
)
def test_one_mistake_keeps_its_own_class(plan: Path, text: str, said: str) -> None:
    plan.write_text(text, "utf-8")
    with pytest.raises((BadSetting, NotFound)) as refused:
        read_plan(plan, {})
    assert str(refused.value).startswith(said)


def test_a_part_of_a_profile_is_named_by_its_own_line(plan: Path) -> None:
    text = named_toml("protocols", "dp-distributed", below="profiles", kind="profile").read_text("utf-8")
    lines = text.splitlines()
    clip = next(number for number, line in enumerate(lines) if "kind" in line and "clip" in line)
    Path("mine.toml").write_text("\n".join([*lines[: clip + 1], "raduis = 1.0", *lines[clip + 1 :]]), "utf-8")
    with pytest.raises(NotFound, match=rf"^mine\.toml, line {clip + 2}: .* called 'raduis'"):
        read_profile("mine.toml")


PARTY = """\
name = "north"
romster = "roster.toml"

[data]
source = "notes.jsonl"
identity = "../notes"

[policy]
least_parties = -1
modles = ["lda"]
"""


def test_the_file_of_a_party_is_told_whole_too(plan: Path) -> None:
    party = plan.with_name("PARTY.toml")
    party.write_text(PARTY, "utf-8")
    with pytest.raises(SettingMistakes) as refused:
        PartyFile.read(party)
    assert [str(mistake).partition(":")[0] for mistake in refused.value.mistakes] == [
        f"PARTY.toml, line {line}" for line in (2, 6, 9, 10)
    ]
