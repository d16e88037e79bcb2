"""Whose budget a simulation's ledgers hold: a trial's, or that of the documents wherever they are used again."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.calculator.ledger_report import ledger_report
from securetm.accounting.ledger import Ledger
from securetm.accounting.spends import Spend
from securetm.corpus.corpus import Corpus
from securetm.corpus.corpus_build import CorpusBuild
from securetm.corpus.records import Columns
from securetm.errors import Failed, Mistake
from securetm.federation.folder import RunFolder, begin, check_all
from securetm.federation.simulation.simulation import execute, make_party
from securetm.federation.sources import corpora_of
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from ..accounting.ledger.test_file import behind_its_back
from ..cli.conftest import securetm
from ..quick_part import quick
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


ANOTHER = {"seed": 7, "another partition": 0, "another file": 0, "fewer documents": 0, "other words": 0, "on disk": 0}


@pytest.mark.parametrize("what", quick(ANOTHER, "fewer documents"))
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
    if what == "on disk":
        CorpusBuild(str(source), tmp_path / "blocks", Columns(party="party"), block_documents=7, shards=3).run()
        plan = plan_over(tmp_path / "blocks", tmp_path)
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
        with pytest.raises(Mistake, match="succeeds it"):  # the first run's documents have another ledger now
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


def test_a_run_that_was_begun_first_spends_no_more_once_its_documents_have_another_ledger(tmp_path: Path) -> None:
    source, home = written(tmp_path / "notes.jsonl"), tmp_path / "ledgers"
    first = begun(tmp_path / "one", plan_over(source, tmp_path), home)  # it has not spent yet
    second = begun(tmp_path / "two", plan_over(source, tmp_path, 7), home)
    with pytest.raises(Mistake, match="succeeds it"):
        spend(first, each=1)
    sheet = ledger_report(first.ledger("party-1"), Unwatched())
    assert str(second.ledgers) in sheet.notes[-1]
    spend(second, each=1)


def test_what_is_brought_over_is_the_most_that_any_document_spent(tmp_path: Path) -> None:
    """Under the least budget."""
    source, home = written(tmp_path / "notes.jsonl"), tmp_path / "ledgers"
    first = begun(tmp_path / "one", plan_over(source, tmp_path), home)
    spend(first, **{"party-1": 1, "party-2": 5})
    Ledger.reopen(first.ledger("party-3"), 2.0).close()
    second = begun(tmp_path / "two", plan_over(source, tmp_path, 7), home)
    for name in second.members:
        with Ledger.read(second.ledger(name)) as ledger:
            assert [(account.run, account.answers.total()) for account in ledger.runs()] == [(first.name, 5)]
            assert ledger.budget.epsilon == 2.0
            assert (ledger.owner, ledger.ended) == (name, "")


def test_a_ledger_that_is_gone_is_no_ledger_that_spent_nothing(tmp_path: Path) -> None:
    source, home = written(tmp_path / "notes.jsonl"), tmp_path / "ledgers"
    first = begun(tmp_path / "one", plan_over(source, tmp_path), home)
    for path in first.ledgers.glob("01-*"):
        path.unlink()
    with pytest.raises(Mistake, match=r"01-party-1\.ledger"):
        begun(tmp_path / "two", plan_over(source, tmp_path, 7), home)
    (home / "documents.sqlite").unlink()
    with pytest.raises(Mistake, match="holds ledgers, and no list of the"):
        begun(tmp_path / "three", plan_over(source, tmp_path), home)


def kept_in(home: Path) -> dict[str, tuple[int, str]]:
    """Every ledger there: how many entries it has, and where it went on."""
    found = {}
    for path in sorted(home.rglob("*.ledger")):
        with Ledger.read(path) as ledger:
            found[str(path.relative_to(home))] = ledger.head[0], ledger.ended
    return found


def of_persons(corpora: Mapping[str, Corpus]) -> dict[str, Corpus]:
    return {name: one.replace(persons=np.arange(len(one)) // 2) for name, one in corpora.items()}


def test_a_run_that_is_refused_ends_no_ledger(tmp_path: Path) -> None:
    """Its documents lie together in another way, and it would spend of persons what was spent of documents."""
    source, home = written(tmp_path / "notes.jsonl"), tmp_path / "ledgers"
    first = begun(tmp_path / "one", plan_over(source, tmp_path), home)
    spend(first, each=1)
    before, folders = kept_in(home), sorted(home.iterdir())
    otherwise = plan_over(source, tmp_path, 7)
    with pytest.raises(Mistake, match="counts the budget of each"):
        begun(tmp_path / "two", otherwise, home, of_persons(corpora_of(otherwise, Unwatched())))
    assert (kept_in(home), sorted(home.iterdir())) == (before, folders)
    spend(first, each=1)


def test_a_ledger_that_is_refused_keeps_those_of_the_other_parties_as_they_are(tmp_path: Path) -> None:
    """The last party's one is damaged: nothing was written for the first one by then."""
    source, home = written(tmp_path / "notes.jsonl"), tmp_path / "ledgers"
    plan = plan_over(source, tmp_path)
    first = begun(tmp_path / "one", plan, home)
    spend(first, each=1)
    (first.ledgers / "04-party-4.ledger").write_bytes(b"no ledger at all")
    corpora = corpora_of(plan, Unwatched())
    turned = dict(zip(corpora, [*list(corpora.values())[1:3], corpora["party-1"], corpora["party-4"]], strict=True))
    with pytest.raises(Failed, match="cannot be read as a ledger"):
        begun(tmp_path / "two", plan, home, turned)
    assert sorted(path.name for path in home.iterdir() if path.is_dir()) == ["0001"]
    for name in ("party-1", "party-2", "party-3"):
        with Ledger.read(first.ledger(name)) as ledger:
            assert ledger.ended == ""


@pytest.mark.parametrize("step", quick(["begun", "recorded", "entered"], "recorded"))
def test_a_run_that_stops_while_ledgers_go_on_loses_nothing_of_them(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of documents changes last and at once: until then the next run goes on from the former ledgers."""
    source, home = written(tmp_path / "notes.jsonl"), tmp_path / "ledgers"
    first = begun(tmp_path / "one", plan_over(source, tmp_path), home)
    spend(first, each=3)
    before = max(spent(first).values())

    def stop(*given: Any) -> None:
        raise KeyboardInterrupt

    of = {"begun": "Ledger.end", "recorded": "Ledger.record", "entered": "_enter"}[step]
    room = "securetm.federation.budget.ledgers." if step == "entered" else "securetm.accounting.ledger.ledger."
    with monkeypatch.context() as stopped:
        stopped.setattr(room + of, stop)
        with pytest.raises(KeyboardInterrupt):
            begun(tmp_path / "two", plan_over(source, tmp_path, 7), home)
    for seed in (0, 7):
        assert min(spent(begun(tmp_path / f"again {seed}", plan_over(source, tmp_path, seed), home)).values()) >= before


def test_copies_and_new_documents_stay_where_their_ledgers_are(tmp_path: Path) -> None:
    """One document with two parties has two ledgers, and begins no third one in the next run."""
    home, plan = tmp_path / "ledgers", plan_over(written(tmp_path / "notes.jsonl"), tmp_path)
    parts = {name: texts(FIVE[name], 20, n) for n, name in enumerate(FIVE)}
    shared = {name: Corpus.from_strings([*own, "city people market street"], name=name) for name, own in parts.items()}
    first = begun(tmp_path / "one", plan, home, shared)
    spend(first, each=2)
    more = {
        name: Corpus.from_strings([*own, "city people market street", "boat trial"], name=name) for name, own in parts.items()
    }
    second = begun(tmp_path / "two", plan, home, more)
    assert second.ledgers == first.ledgers
    assert min(spent(second).values()) > 0


def test_a_run_without_a_budget_is_in_the_ledgers_of_its_documents(tmp_path: Path) -> None:
    """It spends nothing, and a run with a budget finds the ledger that it opened."""
    source, home = written(tmp_path / "notes.jsonl"), tmp_path / "ledgers"
    free = begun(tmp_path / "one", replace(plan_over(source, tmp_path), profile="open"), home)
    assert not free.is_trial
    for name in free.members:
        with Ledger.read(free.ledger(name)) as ledger:
            assert not ledger.has_budget
    paid = begun(tmp_path / "two", plan_over(source, tmp_path), home)
    assert paid.ledgers == free.ledgers
    assert all(budget == 0 for budget in spent(paid).values())
    spend(paid, each=1)
    assert min(spent(paid).values()) > 0


@pytest.fixture(scope="module")
def finished(five: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """An ordinary run of two rounds."""
    place = tmp_path_factory.mktemp("ledgers")
    folder = begin(place / "run", private_plan(place, "dp-local", training__rounds=2), five)
    execute(folder, Unwatched(), comparison=False)
    return folder


def test_after_an_ordinary_run_everybody_has_signed_where_the_ledgers_stand(finished: RunFolder) -> None:
    for name in finished.members:
        with Ledger.read(finished.ledger(name)) as ledger:
            assert (name, ledger.head[0], ledger.witnessed()) == (name, 5, len(finished.members) - 1)
    assert "Peers who countersigned the present head: 4." in " ".join(said(finished.ledger("north")).split())


def said(ledger: Path) -> str:
    told = securetm("budget", "ledger", str(ledger))
    return told.out + told.err


def test_a_folder_shows_the_ledgers_in_it(finished: RunFolder, tmp_path: Path) -> None:
    whole = securetm("budget", "ledger", str(finished.path), "--json").json["ledgers"]
    assert [one["ledger"]["party"] for one in whole] == list(finished.members)
    assert whole[0]["ledger"]["compared_with"] == ["02-south", "03-west", "04-east", "05-centre", "the run's own record"]
    assert len(securetm("budget", "ledger", str(finished.ledgers), "--json").json["ledgers"]) == 5
    refused = securetm("budget", "ledger", str(finished.path), "--allow", "9")
    assert (refused.code, refused.out) == (2, "")
    make_party(finished, "north").close()
    check_all(finished.path)  # nothing of it changed what the run keeps, its ledgers among it
    empty = securetm("budget", "ledger", str(tmp_path))
    assert empty.code == 2
    assert "--ledgers" in empty.err


def test_a_ledger_whose_end_is_cut_off_is_not_called_whole(finished: RunFolder) -> None:
    """Those who cut it off cut the signatures in it off, too; the other parties' files and the run's record still know."""
    path = finished.ledger("north")
    assert "whole" not in said(path)
    behind_its_back(path, "DELETE FROM entries WHERE number = 5", "DELETE FROM witnesses")
    told = said(path)
    assert "holds 4 entries, and not the history of 5 entries that" in " ".join(told.split())
    for memory in path.parent.glob("*.others"):
        memory.unlink()
    assert "history of 5 entries that the run's own record saw" in " ".join(said(path).split())
    (finished.path / "result.json").unlink()
    alone = " ".join(said(path).split())
    assert "no file beside it records an earlier head" in alone
    assert "whole" not in alone
