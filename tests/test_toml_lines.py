"""Each key of a TOML file is found where its statement begins, whatever stands around it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from securetm.settings import KeyPath, lines_of

from .test_threats import GOOD

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
