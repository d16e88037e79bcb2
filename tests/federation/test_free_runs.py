"""Every release is entered in the ledger of its documents, also one that nothing bounds; the totals after it say so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from securetm import federate
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.all_runs import all_runs
from securetm.corpus.corpus import Corpus
from securetm.errors import Mistake
from securetm.federation.wire import wire

from ..cli.conftest import securetm
from ..quick_part import quick
from .conftest import small_plan
from .played import Played, make_party
from .private import public_words


def run(five: Mapping[str, Corpus], folder: Path, name: str, profile: str, ledgers: Path | None) -> Mapping[str, object]:
    settings = {
        "profile": profile,
        "model.name": "lda",
        "model.n_topics": 3,
        "training.rounds": 2,
        "vocabulary.source": "file",
        "vocabulary.file": public_words(folder),
        "origins.vocabulary": "words that the tests made up",
        **({"privacy.noise": 8.0} if profile == "dp-distributed" else {}),  # so that a second run fits
    }
    return federate(five, folder / name, settings, ledgers=ledgers, comparison=False)


def test_after_a_run_without_a_bound_all_runs_are_unbounded_because_of_it(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    ledgers = tmp_path / "ledgers"
    first = run(five, tmp_path, "first", "dp-distributed", ledgers)["spent"][0]  # type: ignore[index]
    assert first["all_runs"] > 0
    assert first["unbounded_because"] is None
    free = run(five, tmp_path, "free", "masked", ledgers)["spent"][0]  # type: ignore[index]
    assert (free["epsilon"], free["all_runs"]) == (None, None)
    last = run(five, tmp_path, "last", "dp-distributed", ledgers)["spent"][0]  # type: ignore[index]
    assert 0 < last["epsilon"] <= last["budget"]  # what this run adds is bounded
    for spent in (free, last):
        assert spent["all_runs"] is None
        assert spent["unbounded_because"].startswith("run free ")
        assert "profile 'masked' has no bound" in spent["unbounded_because"]
    shown = securetm("budget", "ledger", last["ledger"], "--json")
    assert shown.code == 0
    assert shown.json["epsilon"] is None
    assert shown.json["unbounded_because"] == last["unbounded_because"]
    assert "Unbounded, because of run free" in " ".join(shown.err.split())
    assert [one["profile"] for one in shown.json["runs"]] == ["dp-distributed", "masked", "dp-distributed"]
    assert [one["epsilon"] is None for one in shown.json["runs"]] == [False, True, False]


@pytest.mark.slow
def test_a_run_that_bounds_words_leaves_documents_unbounded(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    ledgers = tmp_path / "ledgers"
    words = run(five, tmp_path, "words", "iftm", ledgers)["spent"][0]  # type: ignore[index]
    assert (words["unit"], words["unbounded_because"]) == ("word", None)
    assert words["all_runs"] == pytest.approx(8.0)
    whole = run(five, tmp_path, "whole", "dp-distributed", ledgers)["spent"][0]  # type: ignore[index]
    assert whole["all_runs"] is None
    assert "profile 'iftm' bounds single words, and no whole document" in whole["unbounded_because"]


@pytest.mark.parametrize("profile", quick(("open", "masked", "bfv"), "bfv"))
def test_the_entry_is_on_disk_before_the_first_answer_leaves(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Of a trial too: its ledger lies in the run's folder."""
    spent = run(five, tmp_path, "run", profile, None)["spent"]
    for one in spent:  # type: ignore[attr-defined]
        with Ledger.read(Path(one["ledger"])) as ledger:
            assert [entry.content["kind"] for entry in ledger.entries()] == ["opened", "unbounded"]
            assert one["trial"]
            assert one["head"] == ledger.head[1].hex()


def test_a_party_that_cannot_enter_it_answers_nothing(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(profile="open")
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    assert isinstance(played.send(party, played.invite()), wire.Accepted)
    assert party.ledger is not None
    party.ledger.end("another ledger")
    refused = played.send(party, played.ask("words", {}))
    assert refused == wire.Refusal("Failed")
    assert party.store.rows("SELECT * FROM rounds") == []


def test_no_party_starts_without_a_ledger(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    party = make_party("north", small_plan(profile="open"), corpora, tmp_path)
    with pytest.raises(Mistake, match="has no ledger to enter what it releases under profile"):
        type(party)("north", party.members, party.agreement, party.corpus, party.store, party.entropy)


def test_one_entry_says_it_for_all_answers_of_a_run(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(profile="open")
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    played.send(party, played.invite())
    for _ in range(2):
        assert isinstance(played.send(party, played.ask("words", {})), wire.Accepted)
    found = all_runs(tmp_path / "north.ledger")
    assert found is not None
    assert len(found.because) == 1
