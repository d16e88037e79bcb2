"""Settings are read strictly: nothing misspelt, missing or of another kind gets through, and every refusal says where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from securetm.errors import BadSetting, Misuse, NoSuchPath, NotFound, Unreadable, UnreadableToml
from securetm.settings import CommandLineText, digest, from_table, read_toml


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
