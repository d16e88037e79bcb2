"""Docstrings are read without importing anything, cached, and come out as prose."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from securetm.corpus import docstrings
from securetm.corpus.docstrings import docstring_parties, docstrings_in, prose
from tests.corpus.generated import check

SOURCE = b'''
"""Module."""
if True:
    class A:
        """Class."""
        async def f(self):
            """Inner."""
            "not a docstring"
def g(): return """not one either"""
try:
    def h():
        \'\'\'Last.\'\'\'
except ImportError:
    pass
'''

DOCSTRING = """Compute the :class:`~torch.nn.Weight` of birds, see `numpy.mean <http://x.y>`_.

The mass :math:`m^2` and ``snake_code`` matter::

    literal = "code"

.. note:: Feathers count.

Parameters
----------
axis : {'a', 'b'}, optional
    The direction of flight.

Args:
    wings (int, optional): how many wings.

:param tail: length of the tail

>>> bird()
output of bird
... more

After the example.
"""


def test_docstrings_in_order() -> None:
    assert list(docstrings_in(SOURCE)) == ["Module.", "Class.", "Inner.", "Last."]
    assert list(docstrings_in(b'"""a""" syntax error')) == []
    assert list(docstrings_in(b"\0 '''")) == []


def test_prose_has_no_code() -> None:
    words = prose(DOCSTRING).split()
    for kept in ("Weight", "birds,", "mean", "Feathers", "direction", "many", "length", "After"):
        assert kept in words
    for gone in ("literal", "Parameters", "axis", "optional", "output", "snake_code", "m^2", "wings", "Args:", "bird()", "::"):
        assert not any(gone == word or (len(gone) > 5 and gone in word) for word in words if word != "wings.")


def test_parties_are_cached_and_a_damaged_cache_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docstrings, "PACKAGES", {"rich": "rich", "not-there": "not_there_at_all"})
    monkeypatch.setattr(docstrings, "STANDARD_LIBRARY", "packaging")
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(small_library(tmp_path))})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    seen: list[tuple[str, int, int]] = []
    first = docstring_parties(lambda *progress: seen.append(progress))
    assert list(first) == ["packaging", "rich"]
    assert len(first["packaging"]) == 2  # a double and a short one are left out
    assert {party for party, done, total in seen if done == total} == {"packaging", "rich"}
    files = sorted((tmp_path / "cache" / "securetm").iterdir())
    assert len(files) == 2
    files[0].write_bytes(files[0].read_bytes()[:100])
    seen.clear()
    again = docstring_parties(lambda *progress: seen.append(progress))
    assert {party for party, _, _ in seen} == {"packaging"}
    for party, corpus in again.items():
        check(corpus)
        assert corpus.vocabulary == first[party].vocabulary
        assert corpus.keys.tolist() == first[party].keys.tolist()


def small_library(folder: Path) -> Path:
    library = folder / "library"
    (library / "test").mkdir(parents=True, exist_ok=True)
    long = "Birds beat their wings and feathers fall upon the hills where horses run over meadows by the river in spring {}"
    doubled = f'"""{long.format("rain")}"""\ndef f():\n    """{long.format("rain")}"""\n'
    (library / "a.py").write_text(doubled + '"""no"""\ndef g():\n    """Short."""\n')
    (library / "b.py").write_text(f'"""{long.format("sun")}"""')
    (library / "test" / "c.py").write_text(f'"""{long.format("tests")}"""')
    (library / "bad.py").write_bytes(b'"""\xff"""')
    return library


def test_nothing_is_imported(tmp_path: Path) -> None:
    program = (
        "import sys, types; from pathlib import Path; from securetm.corpus import docstrings as d\n"
        "d.PACKAGES = {'rich': 'rich'}\n"
        f"d.sysconfig = types.SimpleNamespace(get_paths=lambda: {{'stdlib': {str(small_library(tmp_path))!r}}})\n"
        f"d.docstring_parties(cache=Path({str(tmp_path / 'c')!r})); print('rich' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
