"""Whose budget a simulation's ledgers hold: a trial's, or that of the documents wherever they are used again."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.spends import Spend
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, Unwatched, begin
from securetm.federation.simulation import make_party
from securetm.federation.sources import corpora_of
from securetm.plans import Plan

from .conftest import FIVE, texts
from .private import private_plan

ANSWER = Spend(GaussianDpEvent(10.0))


def written(path: Path, **changes: str) -> Path:
    """Documents of five subjects in a file."""
    rows = [
        {"text": changes.get(text, text), "party": name} for n, name in enumerate(FIVE) for text in texts(FIVE[name], 20, n)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def plan_over(source: Path, folder: Path, seed: int = 0, **more: Any) -> Plan:
    """Documents dealt out by that seed."""
    how = {"corpus__source": str(source), "corpus__partition": "equal", "corpus__parties": 4, "seed": seed, **more}
    return private_plan(folder, "dp-local", **how)


def begun(path: Path, plan: Plan, ledgers: Path | None = None, corpora: Mapping[str, Corpus] | None = None) -> RunFolder:
    return begin(path, plan, corpora or corpora_of(plan, Unwatched()), ledgers=ledgers)


def spend(folder: RunFolder, **answers: int) -> None:
    """What a run would enter: so many answers of each party, or of all."""
    for name in folder.members:
        party = make_party(folder, name)
        assert party.ledger is not None
        for _ in range(answers.get(name, answers.get("each", 0))):
            party.ledger.charge(folder.name, ANSWER, {"profile": "dp-local"})
        party.close()


def spent(folder: RunFolder) -> dict[str, float]:
    """Of each party's documents."""
    found = {}
    for name in folder.members:
        party = make_party(folder, name)
        assert party.ledger is not None
        found[name] = party.ledger.spent().epsilon
        party.close()
    return found


def test_a_trial_has_ledgers_of_its_own(tmp_path: Path) -> None:
    """Another profile, or another run, begins with the whole budget, and leaves no other folder behind."""
    plan = plan_over(written(tmp_path / "notes.jsonl"), tmp_path)
    first = begun(tmp_path / "runs" / "one", plan)
    spend(first, each=3)
    second = begun(tmp_path / "runs" / "two", plan)
    assert set(spent(second).values()) == {0}
    assert first.ledger("party-1").is_relative_to(first.path)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["one", "two"]


ANOTHER = {"seed": 7, "another partition": 0, "another file": 0, "fewer documents": 0, "other words": 0}


@pytest.mark.parametrize("what", ANOTHER)
def test_nothing_but_the_documents_decides_what_is_left(what: str, tmp_path: Path) -> None:
    """Eight must not become eight again because of a seed, a file's name, an order, a tokeniser or a document less."""
    source, home = written(tmp_path / "notes.jsonl"), tmp_path / "ledgers"
    first = begun(tmp_path / "one", plan_over(source, tmp_path), home)
    spend(first, each=3)
    before = max(spent(first).values())
    assert before > 0
    plan, corpora = plan_over(source, tmp_path, ANOTHER[what]), None
    if what == "another partition":
        plan = plan_over(source, tmp_path, corpus__partition="column", corpus__party="party")
    if what == "another file":
        lines = source.read_text("utf-8").splitlines()
        copy = tmp_path / "else" / "copy.jsonl"
        copy.parent.mkdir()
        copy.write_text("\n".join(reversed(lines)), "utf-8")
        plan = plan_over(copy, tmp_path)
    if what == "fewer documents":
        corpora = {name: one.select(np.arange(5, len(one))) for name, one in corpora_of(plan, Unwatched()).items()}
    if what == "other words":
        plan = plan_over(source, tmp_path, tokeniser__min_length=5)
    second = begun(tmp_path / "elsewhere" / "two", plan, home, corpora)
    assert min(spent(second).values()) >= before
    spend(second, each=1)
    third = begun(tmp_path / "three", plan_over(source, tmp_path), home)
    assert min(spent(third).values()) > before
    if what in ("seed", "another partition"):
        with pytest.raises(Exception, match="went on"):  # the first run's documents have another ledger now
            spend(first, each=1)


def test_documents_that_were_never_used_have_spent_nothing(tmp_path: Path) -> None:
    home = tmp_path / "ledgers"
    spend(begun(tmp_path / "one", plan_over(written(tmp_path / "notes.jsonl"), tmp_path), home), each=3)
    others = {name: Corpus.from_strings(texts(FIVE[name], 20, 100 + n), name=name) for n, name in enumerate(FIVE)}
    fresh = begun(tmp_path / "two", plan_over(tmp_path / "notes.jsonl", tmp_path), home, others)
    assert set(spent(fresh).values()) == {0}


def test_the_folder_tells_no_document(tmp_path: Path) -> None:
    """Digests are keyed, and nobody but the owner reads them: two folders over the same documents have nothing in common."""
    plan = plan_over(written(tmp_path / "notes.jsonl"), tmp_path)
    kept = []
    for name in ("a", "b"):
        begun(tmp_path / f"run {name}", plan, tmp_path / name)
        (index,) = (tmp_path / name).glob("*.sqlite")
        assert stat.S_IMODE(index.stat().st_mode) == 0o600
        kept.append(index.read_bytes())
    assert "river" not in repr(kept)
