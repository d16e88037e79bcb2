"""A run under a budget starts from what is public or paid for, and from nothing else; what it spends includes its origins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from securetm.contracts.origin import OriginKind
from securetm.federation.folder import reopen
from securetm.federation.release import released_model
from securetm.models.stored_model import StoredModel

from ..federation.private import PUBLIC
from ..quick_part import quick
from .conftest import Said, securetm

SMALL = "--corpus documents.jsonl --partition column --model lda-vi --topics 3 --rounds 2 --no-comparison --json".split()
WITHOUT = ("--profile", "masked", "--set", "vocabulary.min_documents=2", "--set", "vocabulary.most_candidates=500")
BUDGET = ("--profile", "dp-central", "--epsilon", "4")
WHY = "the glossary of a ministry, published in 2020"


def ran(out: str | Path, *options: str) -> Said:
    shutil.rmtree(out, ignore_errors=True)
    return securetm("run", *SMALL, *options, "--out", str(out))


def told(said: Said) -> str:
    return " ".join(said.err.split())


@pytest.fixture(scope="module")
def runs(workplace: Path) -> Path:
    return workplace / "runs"


@pytest.fixture
def unbounded(here: Path, runs: Path) -> Path:
    """A run without noise over the documents, trained once."""
    if not (runs / "unbounded").exists():
        assert ran(runs / "unbounded", *WITHOUT).code == 0
    return runs / "unbounded"


@pytest.fixture
def paid(here: Path, runs: Path) -> Path:
    """A run under a budget from a list that the plan declares public, trained once."""
    (here / "words.txt").write_text("\n".join(PUBLIC), "utf-8")
    if not (runs / "paid").exists():
        said = ran(runs / "paid", *BUDGET, "--vocabulary", "words.txt", "--public", f"vocabulary={WHY}")
        assert said.code in (0, 1), said.err
    return runs / "paid"


def spent_of(run: Path) -> list[dict[str, Any]]:
    return list(json.loads((run / "result.json").read_text("utf-8"))["spent"])


def model_of(run: Path) -> str:
    return str(released_model(run))


@pytest.mark.parametrize("profile", ["dp-distributed", "iftm"])
def test_a_budget_does_not_start_from_a_model_or_words_of_a_run_without_one(profile: str, unbounded: Path) -> None:
    """Both are made of the same documents without noise, and epsilon would be printed and signed all the same."""
    options = ("--profile", profile, "--model", "lda") if profile == "iftm" else ("--profile", profile, "--epsilon", "4")
    for more in (("--continue", str(unbounded)), ("--vocabulary", model_of(unbounded))):
        if "--continue" in more and profile == "iftm":
            options = ("--profile", profile)
        said = ran("runs/none", *options, *more)
        assert said.code == 2, said.out
        assert "may tell anything about documents" in told(said)
        assert "trained under masked, which has no budget" in told(said)
        assert str(unbounded) in "".join(said.err.split())
        assert "train what it comes from under a budget too" in told(said)
        assert not Path("runs/none").exists()


def test_nobody_declares_a_file_public_whose_own_origin_says_otherwise(unbounded: Path) -> None:
    said = ran("runs/none", *BUDGET, "--vocabulary", model_of(unbounded), "--public", f"vocabulary={WHY}")
    assert said.code == 2
    assert "an origin is known: unbounded" in told(said)
    assert "leave out --public" in told(said)


def test_the_list_of_a_run_has_the_origin_of_its_model(unbounded: Path) -> None:
    listed = str(reopen(unbounded).words)
    said = ran("runs/none", *BUDGET, "--vocabulary", listed, "--public", f"vocabulary={WHY}")
    assert said.code == 2
    assert "an origin is known: unbounded" in told(said)
    assert "leave out --public" in told(said)


@pytest.mark.parametrize("setting", quick(["vocabulary", "stop_words"], "vocabulary"))
def test_a_file_without_an_origin_is_unbounded_until_a_reason_is_given(setting: str, here: Path) -> None:
    (here / "listed.txt").write_text("\n".join(PUBLIC), "utf-8")
    option = ("--vocabulary", "listed.txt") if setting == "vocabulary" else ("--set", "tokeniser.stop_words=listed.txt")
    if setting == "stop_words":
        (here / "listed.txt").write_text("an\nthe", "utf-8")
        option = (*option, "--vocabulary", "english", "--set", "vocabulary.max_words=300")
    said = ran("runs/none", *BUDGET, *option)
    assert said.code == 2
    assert f'--public {setting}="WHY"' in told(said)
    said = ran("runs/declared", *BUDGET, *option, "--public", f"{setting}={WHY}")
    assert said.code in (0, 1), said.err
    inputs = {one["setting"]: one for one in said.json["origins"]["inputs"]}
    assert (inputs[setting]["kind"], inputs[setting]["reason"], inputs[setting]["declared"]) == ("public", WHY, True)
    assert said.json["origins"]["product"]["rests_on"] == [f"listed.txt: {WHY}"]
    shown = " ".join(securetm("run", "--resume", "runs/declared").out.split())
    assert f"because: {WHY}" in shown


def test_a_run_spends_what_it_started_from_and_its_own(paid: Path, tmp_path: Path) -> None:
    first = spent_of(paid)
    for more in (("--continue", str(paid)), ("--vocabulary", model_of(paid))):
        said = ran(tmp_path / "second", *BUDGET, *more)
        assert said.code in (0, 1), said.err
        for before, now in zip(first, said.json["spent"], strict=True):
            assert now["epsilon"] == pytest.approx(now["own"]["epsilon"] + before["epsilon"])
            assert now["delta"] == pytest.approx(now["own"]["delta"] + before["delta"])
            assert now["all_runs"] >= now["own"]["epsilon"] + before["epsilon"] - 1e-9
        product = StoredModel.open(released_model(tmp_path / "second")).origin
        assert product is not None
        assert product.kind is OriginKind.PAID
        assert len(product.entries) == 2
        assert product.rests_on == (f"words.txt: {WHY}",)
    third = ran(tmp_path / "third", *BUDGET, "--continue", str(tmp_path / "second"))
    assert third.json["spent"][0]["epsilon"] == pytest.approx(third.json["spent"][0]["own"]["epsilon"] * 3, rel=0.01)
    shown = " ".join(securetm("run", "--resume", str(tmp_path / "third")).out.split())
    assert "is its own 4 and what it started from: epsilon 4 of the run" in shown
    assert f"Taken as public by an earlier run: words.txt: {WHY}" in shown


def test_a_run_that_goes_on_with_a_smaller_budget_has_noise_for_it_or_is_refused(paid: Path, tmp_path: Path) -> None:
    """The earlier run's noise was the least for its own budget: a single round with it may spend more than the new one."""
    small = ("--profile", "dp-central", "--epsilon", "1", "--continue", str(paid))
    said = ran(tmp_path / "smaller", *small)
    assert said.code in (0, 1), said.err
    assert (said.json["rounds"], said.json["spent"][0]["own"]["epsilon"]) == (2, pytest.approx(1, rel=0.01))
    said = ran(tmp_path / "none", *small, "--set", "privacy.noise=0.5")
    assert said.code == 2
    assert "in a single round, and the budget of the run is 1" in told(said)
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_what_a_ledger_of_the_documents_holds_is_not_counted_twice(paid: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in Path("documents.jsonl").read_text("utf-8").splitlines()]
    newcomer = sorted({row["party"] for row in rows})[0]
    early, late = tmp_path / "early.jsonl", tmp_path / "late.jsonl"
    early.write_text("".join(json.dumps(row) + "\n" for row in rows if row["party"] != newcomer), "utf-8")
    late.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    ledgers = ("--ledgers", str(tmp_path / "ledgers"))
    listed = ("--vocabulary", "words.txt", "--public", f"vocabulary={WHY}")
    first = ran(tmp_path / "first", *BUDGET, *listed, *ledgers, "--corpus", str(early), "--set", "privacy.epsilon=2")
    assert first.code in (0, 1), first.err
    for each in sorted((tmp_path / "ledgers").glob("*/*.ledger")):
        assert securetm("budget", "ledger", str(each), "--allow", "9").code == 0
    second = ran(tmp_path / "second", *BUDGET, *ledgers, "--continue", str(tmp_path / "first"), "--corpus", str(late))
    assert second.code in (0, 1), second.err
    for one in second.json["spent"]:
        own = one["own"]["epsilon"]
        if one["party"] == newcomer:
            assert one["epsilon"] == own
            assert one["all_runs"] == pytest.approx(own)
        else:
            before = first.json["spent"][0]["epsilon"]
            assert one["epsilon"] == pytest.approx(own + before)
            assert own < one["all_runs"] < own + before + 1.5  # once, by the ledger's own rule
    third = ran(tmp_path / "third", *BUDGET, *ledgers, "--continue", str(paid))
    assert third.code == 2
    assert "holds no entry of the run" in told(third)


def test_what_was_paid_for_by_one_unit_is_not_added_to_what_is_paid_for_by_another(paid: Path, tmp_path: Path) -> None:
    by_word = ("--profile", "iftm", "--model", "lda", "--vocabulary", model_of(paid))
    said = ran(tmp_path / "none", *by_word)
    assert said.code == 2
    assert "is paid for by document, and this run by word: the two do not add up" in told(said)
    rows = [json.loads(line) for line in Path("documents.jsonl").read_text("utf-8").splitlines()]
    owned = "".join(json.dumps({**row, "whose": f"{row['party']} {n // 2}"}) + "\n" for n, row in enumerate(rows))
    (tmp_path / "owned.jsonl").write_text(owned, "utf-8")
    by_person = ("--continue", str(paid), "--corpus", str(tmp_path / "owned.jsonl"), "--person", "whose")
    said = ran(tmp_path / "none", *BUDGET, *by_person)
    assert said.code == 2
    assert "is paid for by document, and this run by person" in told(said)
    assert not (tmp_path / "none" / "result.json").exists()
    listed = ("--vocabulary", "words.txt", "--public", f"vocabulary={WHY}", "--profile", "iftm", "--model", "lda")
    said = ran(tmp_path / "by word", *listed)
    assert said.code in (0, 1), said.err
    said = ran(tmp_path / "none", *BUDGET, "--vocabulary", model_of(tmp_path / "by word"))
    assert "is paid for by word, and this run by document" in told(said)
    said = ran(tmp_path / "again", "--profile", "iftm", "--model", "lda", "--continue", str(tmp_path / "by word"))
    assert said.code in (0, 1), said.err
    assert [one["unit"] for one in said.json["spent"]] == ["word"] * 5
    assert said.json["spent"][0]["epsilon"] > said.json["spent"][0]["own"]["epsilon"] + 7.9


def test_local_ways_keep_an_unbounded_origin(unbounded: Path, tmp_path: Path) -> None:
    said = securetm("adapt", str(unbounded), "--corpus", "mine.jsonl", "--out", str(tmp_path / "mine"), "--json")
    assert said.code == 0, said.err
    origin = StoredModel.open(tmp_path / "mine" / "model.safetensors").origin
    assert origin is not None
    assert origin.kind is OriginKind.UNBOUNDED
    assert ran("runs/none", *BUDGET, "--vocabulary", str(tmp_path / "mine" / "model.safetensors")).code == 2


def test_a_profile_without_a_budget_starts_from_anything_and_is_unbounded(paid: Path, tmp_path: Path) -> None:
    said = ran(tmp_path / "masked", *WITHOUT, "--vocabulary", model_of(paid))
    assert said.code == 0, said.err
    assert said.json["origins"]["product"]["kind"] == "unbounded"
    assert said.json["spent"][0]["epsilon"] is None


@pytest.mark.slow
def test_embeddings_that_documents_bring_need_a_reason_whether_the_plan_names_them_or_not(here: Path, tmp_path: Path) -> None:
    """Whatever made them may have learned from the other documents."""
    rows = [json.loads(line) for line in Path("documents.jsonl").read_text("utf-8").splitlines()]
    brought = "".join(json.dumps({**row, "embedding": [float(n % 7), 1.0]}) + "\n" for n, row in enumerate(rows))
    (tmp_path / "brought.jsonl").write_text(brought, "utf-8")
    options = ("--corpus", str(tmp_path / "brought.jsonl"), "--model", "zeroshot-tm", "--set", "model.hidden=8")
    options = (*options, "--vocabulary", "english", "--set", "vocabulary.max_words=300")
    said = ran("runs/none", *BUDGET, *options)
    assert said.code == 2
    assert "nobody says what made them" in told(said)
    named = ("--embedding", "embedding", "--set", "model.embedding_size=2")
    said = ran("runs/none", *BUDGET, *options, *named)
    assert said.code == 2
    assert '--public embeddings="WHY"' in told(said)
    assert ran(tmp_path / "run", *BUDGET, *options, *named, "--public", f"embeddings={WHY}").code in (0, 1)
