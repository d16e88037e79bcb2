"""Kept results of audits: they are there, they still speak of what is there, and nothing in them was taken from a document."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from securetm.errors import DamagedEvidence
from securetm.federation.soundness import check
from securetm.leakage import evidence as kept_results
from securetm.leakage import evidence_hashes
from securetm.leakage.audit import audit
from securetm.leakage.evidence import (
    Evidence,
    evidence_folder,
    pieces,
    read_evidence,
    read_kept,
    remaining,
    renewed,
    stale,
    still_fresh,
    write_evidence,
)
from securetm.leakage.evidence_hashes import closure, trial_hash
from securetm.leakage.findings import Audit
from securetm.leakage.plans import AuditPlan, Trial, read_audit_plan
from securetm.profiles import MODELS, profile_names

from .conftest import write_plan

COMMITTED = sorted(evidence_folder().glob("*.json"))
AGAIN = "run `securetm audit full --evidence audits/evidence`"


# ---- what is committed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_committed_evidence_speaks_of_what_is_there(path: Path) -> None:
    reasons = stale(read_kept(path))
    assert not reasons, f"audits/evidence/{path.name}: {'; '.join(reasons)}; {AGAIN}"


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_nothing_recovered_and_no_place_is_committed(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r'"(examples|curves|original|recovered|run)":', text)
    assert not re.search(r'"[^"]*(/[a-z]+){2}|\\\\\\\\', text)


def test_the_whole_plan_was_carried_out() -> None:
    left = remaining(read_audit_plan("full"), read_evidence(evidence_folder()))
    missing = [f"{trial.attack} on {', '.join(trial.profiles)}" for trial in left.trials]
    assert not missing, f"audits/evidence lacks {'; '.join(missing)}: {AGAIN}"


@pytest.mark.parametrize("profile", profile_names())
def test_the_plan_tries_a_profile_with_every_model_that_it_admits(profile: str) -> None:
    tried = {trial.run.get("model.name", "prodlda") for trial in read_audit_plan("full").trials if profile in trial.profiles}
    admitted = {model for model in MODELS if not check(profile, model, None, 5)}
    assert admitted
    assert tried == admitted


# ---- a small audit that is kept ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(documents_file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditPlan, Audit]:
    plan = read_audit_plan(write_plan(tmp_path_factory.mktemp("plan") / "small.toml", documents_file))
    return plan, audit(plan)


@pytest.fixture
def folder(small: tuple[AuditPlan, Audit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What was kept of it, with that plan on the shelf."""
    plan, found = small
    monkeypatch.setattr(kept_results, "read_audit_plan", lambda name: plan)
    assert write_evidence(plan, found, tmp_path) == ("masked--prodlda.json", "open--prodlda.json")
    return tmp_path


def test_what_is_kept_is_what_was_found(small: tuple[AuditPlan, Audit], folder: Path) -> None:
    masked, unprotected = read_evidence(folder)
    assert (masked.profile, masked.model, unprotected.profile) == ("masked", "prodlda", "open")
    for kept, finding in zip((unprotected, masked), small[1].findings, strict=True):
        (tried,) = kept.findings
        assert (tried.verdict, tried.claimed, tried.baseline) == (finding.verdict, finding.claimed, finding.baseline)
        assert tried.measured.value == pytest.approx(finding.measured.value)
        assert tried.measured.low == pytest.approx(finding.measured.low, rel=1e-5, abs=1e-9)
        assert (tried.measured.hits, tried.measured.of) == (finding.measured.hits, finding.measured.of)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", tried.date)
        assert tried.cores >= 1
        assert set(tried.bound) == {"profile", "mechanisms", "aggregation", "threat model", "attack", "trial"}
        assert all(re.fullmatch("[0-9a-f]{64}", value) for value in tried.bound.values())
        assert stale(kept) == ()


def test_no_word_of_a_document_is_kept(small: tuple[AuditPlan, Audit], folder: Path) -> None:
    (first, *_) = small[1].findings[0].examples  # it was recovered, and is in the finding
    words = re.findall(r"[a-z]{6,}", first.original)
    assert words
    text = (folder / "open--prodlda.json").read_text("utf-8")
    assert not [word for word in words if word in text]


def test_what_was_kept_before_is_replaced_and_what_was_not_tried_again_stays(
    small: tuple[AuditPlan, Audit], folder: Path
) -> None:
    plan, found = small
    write_evidence(plan, found, folder)
    assert [len(kept.findings) for kept in read_evidence(folder)] == [1, 1]
    harder = replace(plan, trials=(replace(plan.trials[0], effort={"rounds": 1, "documents": 10}),))
    write_evidence(harder, found, folder)
    assert [len(kept.findings) for kept in read_evidence(folder)] == [2, 2]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("attack", "the attack gradient_inversion changed since"),
        ("profile", "the profile masked changed since"),
        ("mechanisms", "a mechanism of the profile masked changed since"),
        ("aggregation", "the aggregation of the profile masked changed since"),
        ("threat model", "the threat model curious_coordinator changed since"),
    ],
)
def test_each_change_has_its_name(folder: Path, what: str, said: str) -> None:
    path = folder / "masked--prodlda.json"
    plain = json.loads(path.read_text("utf-8"))
    plain["findings"][0]["bound"][what] = "0" * 64
    path.write_text(json.dumps(plain), "utf-8")
    assert stale(read_kept(path)) == (said,)


def test_a_trial_that_the_plan_no_longer_has_is_stale(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = kept_results.read_audit_plan("small")
    other = replace(plan, trials=(replace(plan.trials[0], confidence=0.99),))
    monkeypatch.setattr(kept_results, "read_audit_plan", lambda name: other)
    (reason,) = stale(read_kept(folder / "masked--prodlda.json"))
    assert reason == "the plan small no longer tries gradient_inversion this way on masked"


# ---- only what changed is tried again ------------------------------------------------------------------------------


def test_nothing_remains_of_a_plan_that_was_carried_out(small: tuple[AuditPlan, Audit], folder: Path) -> None:
    plan, kept = small[0], read_evidence(folder)
    assert remaining(plan, kept).trials == ()
    assert all(still_fresh(plan.trials[0], profile, kept) for profile in ("open", "masked"))
    assert not still_fresh(plan.trials[0], "masked_strict", kept)


def test_a_new_profile_is_tried_beside_the_baseline_alone(small: tuple[AuditPlan, Audit], folder: Path) -> None:
    plan = small[0]
    wider = replace(plan, trials=(replace(plan.trials[0], profiles=("open", "masked", "masked_strict")),))
    (trial,) = remaining(wider, read_evidence(folder)).trials
    assert trial.profiles == ("open", "masked_strict")


def test_where_the_baseline_is_stale_all_is_tried_again(small: tuple[AuditPlan, Audit], folder: Path) -> None:
    (folder / "open--prodlda.json").unlink()
    assert remaining(small[0], read_evidence(folder)).trials == small[0].trials


def test_an_interrupted_audit_goes_on_where_it_was(small: tuple[AuditPlan, Audit], tmp_path: Path) -> None:
    plan, found = small
    other = replace(plan.trials[0], run={**plan.trials[0].run, "seed": 5})
    longer = replace(plan, trials=(*plan.trials, other))
    asked: list[AuditPlan] = []

    def interrupted(piece: AuditPlan) -> Audit:
        asked.append(piece)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return found

    with pytest.raises(KeyboardInterrupt):
        renewed(longer, tmp_path, interrupted)
    whole = renewed(longer, tmp_path, interrupted)
    assert [piece.trials for piece in asked] == [plan.trials, (other,), (other,)]
    assert whole is not None
    assert whole.findings == found.findings
    assert renewed(longer, tmp_path, interrupted) is None
    assert len(asked) == 3


def test_pieces_share_no_run_and_lose_no_trial() -> None:
    plan = read_audit_plan("quick")
    parts = pieces(plan)
    runs = [[tuple(sorted(map(str, trial.run.items()))) for trial in part.trials] for part in parts]
    assert all(len(set(one)) == 1 for one in runs)
    assert len({one[0] for one in runs}) == len(runs)
    assert sorted(trial_hash(t) for part in parts for t in part.trials) == sorted(trial_hash(t) for t in plan.trials)


def test_another_profile_in_the_list_does_not_make_a_trial_another() -> None:
    trial = read_audit_plan("quick").trials[0]
    assert trial_hash(replace(trial, profiles=("open",))) == trial_hash(trial)
    assert trial_hash(replace(trial, helpers=0)) == trial_hash(trial)  # as if it had said nothing of helpers
    changes = (
        {"effort": {"rounds": 9}},
        {"run": {}},
        {"measure": "x"},
        {"refuted_from": 0.5},
        {"helpers": 1},
        {"adversary": "x"},
    )
    assert len({trial_hash(replace(trial, **change)) for change in changes} | {trial_hash(trial)}) == len(changes) + 1  # type: ignore[arg-type]


# ---- hashes --------------------------------------------------------------------------------------------------------


def test_an_attack_is_bound_to_all_that_it_is_made_of_and_not_to_the_frame() -> None:
    made_of = closure("leakage.attacks.sum_inversion", ("leakage.",))
    assert {"leakage.attacks.sum_inversion", "leakage.parts.cones", "leakage.parts.gradients", "leakage.reading"} <= set(
        made_of
    )
    assert not set(made_of) & {"leakage.audit", "leakage.findings", "leakage.attack", "leakage.attacks.decoder_inversion"}


def test_an_aggregation_is_bound_to_helpers_that_it_starts_by_name() -> None:
    assert "aggregation.homomorphic_worker" in closure("aggregation.bfv", ("aggregation.", "mechanisms."))
    assert set(closure("aggregation.plain", ("aggregation.", "mechanisms."))) == {"aggregation.plain", "aggregation.vectors"}


def test_a_changed_file_changes_the_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leakage" / "attacks").mkdir(parents=True)
    (tmp_path / "leakage" / "attacks" / "one.py").write_text("from securetm.leakage.two import three\n")
    monkeypatch.setattr(evidence_hashes, "_HOUSE", tmp_path)
    found = []
    for text in ("three = 3\n", "three = 4\n", "three = 3\n"):
        (tmp_path / "leakage" / "two.py").write_text(text)
        evidence_hashes.attack_hash.cache_clear()
        found.append(evidence_hashes.attack_hash("one"))
    evidence_hashes.attack_hash.cache_clear()
    assert found[0] == found[2] != found[1]


# ---- damage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"profile": "open", "model": "prodlda", "plan": "full", "findings": [{}]}',
        '{"profile": "open", "model": "lda", "plan": "full", "findings": []}',
    ],
)
def test_damage_is_told_with_the_name_of_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "open--prodlda.json"
    path.write_text(text, "utf-8")
    with pytest.raises(DamagedEvidence, match=r"open--prodlda\.json"):
        read_kept(path)


def test_findings_of_another_plan_are_not_kept(small: tuple[AuditPlan, Audit], tmp_path: Path) -> None:
    wider: tuple[Trial, ...] = small[0].trials * 2
    with pytest.raises(DamagedEvidence, match="not those of its trials"):
        write_evidence(replace(small[0], trials=wider), small[1], tmp_path)
    assert not list(tmp_path.iterdir())


def test_evidence_is_read_without_arithmetic() -> None:
    code = "import sys; from securetm.leakage.evidence import *; read_evidence(evidence_folder()); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert not {"torch", "scipy", "numba", "sklearn", "pandas"} & set(found)


def test_the_name_of_a_file_is_that_of_profile_and_model() -> None:
    assert Evidence("masked", "lda-vi", "full", ()).name == "masked--lda-vi.json"
