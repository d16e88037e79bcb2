"""Docstrings are read without importing anything, cached, and come out as prose."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from securetm.contracts import Array
from securetm.corpus import docstrings
from securetm.corpus.docstrings import docstring_parties, docstrings_in, prose
from securetm.errors import Mistake
from tests.corpus.generated import check
from tests.effort import worked

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


def test_embeddings_are_kept_with_the_docstrings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docstrings, "PACKAGES", {"rich": "rich"})
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(small_library(tmp_path))})
    embedded: list[int] = []

    def lengths(texts: Sequence[str]) -> Array:
        embedded.append(len(texts))
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)

    first = docstring_parties(cache=tmp_path / "cache", embed=lengths, embedded_as="lengths")
    again = docstring_parties(cache=tmp_path / "cache", embed=lengths, embedded_as="lengths")
    assert embedded == [len(one) for one in first.values()]
    for party, corpus in again.items():
        np.testing.assert_array_equal(corpus.embeddings, first[party].embeddings)
    docstring_parties(cache=tmp_path / "cache", embed=lengths, embedded_as="others")
    assert len(embedded) == 4
    assert docstring_parties(cache=tmp_path / "cache")["rich"].embeddings is None


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


def test_one_party_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docstrings, "PACKAGES", {"not-there": "not_there_at_all"})
    with pytest.raises(Mistake, match="only 1"):
        docstring_parties(cache=tmp_path)


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docstrings, "PACKAGES", {"rich": "rich"})
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(small_library(tmp_path))})
    (tmp_path / "file").write_text("in the way")
    assert len(docstring_parties(cache=tmp_path / "file")) == 2


def test_nothing_is_imported(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from securetm.corpus import docstrings as d; d.PACKAGES = {'rich': 'rich'}\n"
        f"d.sysconfig.get_paths = lambda: {{'stdlib': {str(small_library(tmp_path))!r}}}\n"
        f"d.docstring_parties(cache=Path({str(tmp_path / 'c')!r})); print('rich' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.slow
def test_all_five_parties(tmp_path: Path) -> None:
    parties = docstring_parties(cache=tmp_path)
    again = {}
    assert (
        worked(lambda: again.update(docstring_parties(cache=tmp_path))) < 5
    )  # what is kept is not read from the packages again
    if len(parties) == 5:
        least = {"standard library": 1_000, "numpy": 900, "scipy": 2_000, "torch": 5_000, "scikit-learn": 1_500}
        assert all(len(parties[party]) > n for party, n in least.items())
    assert [len(c) for c in again.values()] == [len(c) for c in parties.values()]
