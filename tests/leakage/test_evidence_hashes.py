"""What a kept result is bound to: the source of all that made it, and of nothing else. No audit is carried out here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from securetm.leakage import evidence_hashes
from securetm.leakage.evidence_hashes import bound_to, closure
from securetm.leakage.plans import Trial, read_audit_plan

BOUND = {"profile", "mechanisms", "aggregation", "corpus", "threat model", "attack", "judging", "trial"}


def _of_noise(measure: str = "share of one sum's epsilon that is shown, if the noise is Gaussian") -> Trial:
    found = [t for t in read_audit_plan("empirical_epsilon").trials if t.attack == "many_run_epsilon" and t.measure == measure]
    return replace(found[0], profiles=("open", "dp-local"))


def test_an_attack_is_bound_to_all_that_it_is_made_of_and_not_to_the_frame() -> None:
    made_of = set(closure(("leakage.attacks.sum_inversion",), ("leakage.",)))
    assert {"leakage.attacks.sum_inversion", "leakage.parts.cones", "leakage.parts.gradients", "leakage.reading"} <= made_of
    assert {"leakage.attack", "leakage.views"} <= made_of  # what several attacks judge alike is reckoned there
    assert not made_of & {"leakage.audit", "leakage.findings", "leakage.attacks.decoder_inversion"}


def test_an_aggregation_is_bound_to_helpers_that_it_starts_by_name() -> None:
    within = ("aggregation.", "mechanisms.")
    assert "aggregation.homomorphic_worker" in closure(("aggregation.bfv",), within)
    assert set(closure(("aggregation.plain",), within)) == {"aggregation.plain", "aggregation.vectors"}


def test_a_folder_s_own_file_hides_nothing_behind_it() -> None:
    """`from securetm.accounting.ledger import Ledger` names a folder: what stands behind it is bound, too."""
    assert {"accounting.ledger.ledger", "accounting.ledger.accounts"} <= set(closure(("accounting.ledger",), ("accounting.",)))


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The whole source once more, to be changed; hashes are made of it."""
    house = tmp_path / "securetm"
    shutil.copytree(evidence_hashes._HOUSE, house, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    monkeypatch.setattr(evidence_hashes, "_HOUSE", house)
    yield house
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    for cached in (
        evidence_hashes.attack_hash,
        evidence_hashes._parts,
        evidence_hashes._corpus_hash,
        evidence_hashes._judging_hash,
        evidence_hashes._named_in,
    ):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ("accounting/composition.py", {"accounting"}),  # what makes one epsilon of all answers
        ("accounting/losses.py", {"accounting"}),
        ("accounting/ledger/accounts.py", {"accounting"}),
        ("federation/paying.py", {"accounting"}),
        ("corpus/docstrings.py", {"corpus"}),
        ("corpus/plain_prose.py", {"corpus"}),
        ("corpus/tokeniser.py", {"corpus"}),
        ("mechanisms/gaussian_noise.py", {"mechanisms"}),
        ("leakage/attack.py", {"attack"}),
        ("leakage/views.py", {"attack"}),
        ("leakage/parts/empirical_epsilon.py", {"attack"}),
        ("leakage/intervals.py", {"attack", "judging"}),
        ("leakage/findings.py", {"judging"}),
        ("leakage/canaries.py", set()),  # this trial has none
        ("corpus/readers.py", {"corpus"}),  # who deals documents out knows files, too
        ("corpus/synthetic.py", set()),
        ("federation/sources.py", {"corpus"}),
        ("federation/round.py", {"mechanisms"}),
        ("leakage/truth.py", {"judging"}),
        ("leakage/controls.py", {"judging"}),
        ("leakage/meddling.py", set()),  # nobody lies in this trial
        ("leakage/audit.py", set()),
        ("cli/main.py", set()),
    ],
)
def test_what_a_changed_file_makes_stale(copied: Path, changed: str, what: set[str]) -> None:
    _forget()
    before = bound_to(_of_noise(), "dp-local")
    assert set(before) == BOUND | {"accounting"}
    (copied / changed).write_text((copied / changed).read_text("utf-8") + "\n# another\n", "utf-8")
    _forget()
    after = bound_to(_of_noise(), "dp-local")
    assert {name for name in before if before[name] != after[name]} == what


@pytest.mark.parametrize(("setting", "lies"), [("liars", "leakage/lying.py"), ("meddled", "leakage/meddling.py")])
def test_a_result_is_bound_to_who_lied_for_it(copied: Path, setting: str, lies: str) -> None:
    _forget()
    trial = replace(_of_noise(), **{setting: 1})
    before = bound_to(trial, "open")
    (copied / lies).write_text((copied / lies).read_text("utf-8") + "\n# another\n", "utf-8")
    _forget()
    assert bound_to(trial, "open")["attack"] != before["attack"]


@pytest.mark.parametrize(("changed", "stale"), [("leakage/canaries.py", True), ("corpus/synthetic.py", False)])
def test_made_documents_are_bound_to_what_makes_them(copied: Path, changed: str, stale: bool) -> None:
    _forget()
    trial = replace(_of_noise(), canaries=10)
    before = bound_to(trial, "open")
    (copied / changed).write_text((copied / changed).read_text("utf-8") + "\n# another\n", "utf-8")
    _forget()
    assert (bound_to(trial, "open") != before) == stale
