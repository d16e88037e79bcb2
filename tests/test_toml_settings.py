"""Settings in TOML and on the command line: what is read, the file and line of every mistake, and what to do instead."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from securetm.errors import BadSetting, Misuse, NoSuchPath, NotFound, SettingMistakes, Unreadable, UnreadableToml
from securetm.plans.party_file import PartyFile
from securetm.plans.profiles import read_profile
from securetm.plans.recommend import whole_plan
from securetm.resources import named_toml
from securetm.settings import CommandLineText, KeyPath, digest, from_table, lines_of, read_toml

from .test_threats import GOOD


@dataclass(frozen=True)
class Choice:
    name: str
    many: int = 3
    share: float = 0.5
    loud: bool = False
    words: tuple[str, ...] = ()
    limit: int | None = None
    rate: float | None = 0.25
    nested: Mapping[str, Any] = field(default_factory=dict)


def choice(**table: object) -> Choice:
    return from_table(Choice, {"name": "a", **table}, "[here]")


def test_every_kind_is_read() -> None:
    read = choice(many=7, share=2, loud=True, words=["x", "y"], limit=0, rate=None, nested={"a": [1]})
    assert read == Choice("a", 7, 2.0, True, ("x", "y"), 0, None, {"a": [1]})
    assert isinstance(read.share, float)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"many": "12"}, {"many": 12}),
        ({"share": "1e-3"}, {"share": 1e-3}),
        ({"loud": "true"}, {"loud": True}),
        ({"loud": "False"}, {"loud": False}),
        ({"limit": 0}, {"limit": 0}),
    ],
)
def test_numbers_come_as_texts_from_the_command_line(table: dict[str, object], expected: dict[str, object]) -> None:
    read = choice(**{name: CommandLineText(value) if isinstance(value, str) else value for name, value in table.items()})
    for name, value in expected.items():
        assert getattr(read, name) == value
        assert type(getattr(read, name)) is type(value)


@pytest.mark.parametrize(
    "table",
    [
        {"many": "3"},
        {"share": "0.5"},
        {"loud": "true"},
        {"many": 1.0},
        {"many": True},
        {"many": [1]},
        {"share": True},
        {"share": float("inf")},
        {"share": "half"},
        {"loud": 1},
        {"words": "x"},
        {"words": [1]},
        {"words": {"x": 1}},
        {"limit": True},
        {"nested": 3},
        {"name": 3},
        {"name": None},
    ],
)
def test_another_kind_is_refused_with_its_place(table: dict[str, object]) -> None:
    (name,) = table
    with pytest.raises(BadSetting, match=r"^the setting `\w+` in \[here\] is .*; it must be ") as refusal:
        choice(**table)
    assert refusal.value.name == name
    assert refusal.value.problem.startswith("must be ")
    assert name in refusal.value.advice()
    assert refusal.value.exit_code == 2


def test_a_misspelt_name_is_told_with_those_there_are() -> None:
    with pytest.raises(NotFound, match="'mnay'") as refusal:
        choice(mnay=3)
    assert refusal.value.known == tuple(sorted(Choice.__dataclass_fields__))
    assert "many" in refusal.value.advice()


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(BadSetting, match=r"the setting `name` in \[here\] is missing"):
        from_table(Choice, {}, "[here]")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(derandomize=True, database=None, deadline=None)
@given(st.dictionaries(st.sampled_from([*Choice.__dataclass_fields__, "other"]), values, max_size=5))
def test_whatever_stands_in_a_table_is_read_or_refused(table: dict[str, object]) -> None:
    try:
        read = from_table(Choice, table, "[here]")
    except Misuse:
        return
    assert isinstance(read.many, int)
    assert not isinstance(read.many, bool)
    assert isinstance(read.share, float)
    assert isinstance(read.words, tuple)


# ---- digests -------------------------------------------------------------------------------------------------------


def test_equal_content_has_equal_digests() -> None:
    assert digest({"a": 1, "b": [1, "x"]}) == digest({"b": [1, "x"], "a": 1})
    assert digest(("a", "b")) == digest(["a", "b"])
    assert len(digest({})) == 32


@pytest.mark.parametrize("pair", [(1, "1"), (1, 1.5), (True, 1), (["ab"], ["a", "b"]), ({"a": 1}, {"a": 2}), (None, "null")])
def test_other_content_has_another_digest(pair: tuple[object, object]) -> None:
    assert digest(pair[0]) != digest(pair[1])


# ---- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"a = ", b"a = 1\na = 2\n", b"\xff\xfe", b"[x\n", b"a = 1 2"])
def test_what_is_not_toml_is_told_with_its_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_bytes(content)
    with pytest.raises(UnreadableToml, match=r"plan\.toml is not valid TOML: .+") as refusal:
        read_toml(path)
    assert refusal.value.advice()


def test_a_byte_order_mark_is_named(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("a = 1", encoding="utf-8-sig")
    with pytest.raises(UnreadableToml, match="begins with a byte-order mark"):
        read_toml(tmp_path / "plan.toml")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoSuchPath, match=r"absent\.toml"):
        read_toml(tmp_path / "absent.toml")
    with pytest.raises(Unreadable, match="Is a directory"):
        read_toml(tmp_path)


# ---- lines -----------------------------------------------------------------------------------------------------------------


ROOT = Path(__file__).resolve().parents[1]
FILE = '''\
# [comment]
a = 1 # b = 2
b.c."d.e" = """
[no.table]
x = 1
"""
[t]
k = { p = 1, q = { r = [1, 2,
  { z = 3 }] } }
l = [ # a comment ]
  "a]",
  'b', { m = 1 },
]
[[arr]]
n = 1
[[arr]]
n = 2
[arr.sub]
o = 1979-05-27 07:32:00
[[arr.deep]]
x = \'\'\'it's\'\'\'
["q \\" u"]
v = """a"""""
w = 5
'''
PLACES: dict[KeyPath, int] = {
    ("a",): 2,
    ("b", "c", "d.e"): 3,
    ("t",): 7,
    ("t", "k", "q", "r"): 8,
    ("t", "k", "q", "r", 2, "z"): 8,
    ("t", "l"): 10,
    ("t", "l", 0): 10,
    ("t", "l", 2, "m"): 10,
    ("arr",): 14,
    ("arr", 0, "n"): 15,
    ("arr", 1): 16,
    ("arr", 1, "n"): 17,
    ("arr", 1, "sub", "o"): 19,
    ("arr", 1, "deep", 0, "x"): 21,
    ('q " u', "v"): 23,
    ('q " u', "w"): 24,
}


def test_a_key_is_on_its_line() -> None:
    found = lines_of(FILE)
    assert {path: found[path] for path in PLACES} == PLACES


def paths(content: object, above: KeyPath = ()) -> set[KeyPath]:
    """The path of everything in a file's content."""
    parts = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return {above, *(one for name, inner in parts for one in paths(inner, (*above, name)))}


SHIPPED = [path for folder in ("protocols", "threat_models", "audits") for path in sorted((ROOT / folder).rglob("*.toml"))]


def test_every_key_that_tomllib_finds_has_a_line_and_no_other_has() -> None:
    for text in (FILE, GOOD, *(path.read_text("utf-8") for path in SHIPPED)):
        assert set(lines_of(text)) == paths(tomllib.loads(text)) - {()}, text[:40]


PIECES = st.sampled_from([*"[]{}=.,#\"'\n\\ ab1", '"""', "'''", "[[", "]]", "a = 1\n", "[t]\n"])


@given(st.lists(PIECES, max_size=30).map("".join))
def test_no_text_stops_it(text: str) -> None:
    found = lines_of(text)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(found) == paths(content) - {()}


# ---- mistakes --------------------------------------------------------------------------------------------------------------


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
        whole_plan(path, overrides)
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
        whole_plan(plan, {})
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
