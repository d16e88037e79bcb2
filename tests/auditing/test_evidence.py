"""Kept results of audits: bound to the source of all that made them and of nothing else, still speaking of what is there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from securetm.auditing import bindings, runner
from securetm.auditing import evidence as kept_results
from securetm.auditing.attacks import attack_names
from securetm.auditing.bindings import bound_to, closure, trial_hash
from securetm.auditing.evidence import (
    FORMAT,
    Evidence,
    changed_since,
    due_refusals,
    evidence_folder,
    read_all_evidence,
    read_evidence,
    read_refusals,
    remaining,
    stale_refusals,
    still_fresh,
    to_keep,
    trials_by_hash,
)
from securetm.auditing.plans import AuditPlan, Trial, count_of_tests, read_audit_plan
from securetm.auditing.record import NOT_REFUTED, REFUTED, Audit, Finding, Measured
from securetm.auditing.runner import audit, keep_findings
from securetm.auditing.verdicts import corrected
from securetm.errors import Failed
from securetm.federation.soundness import check
from securetm.models import MODELS
from securetm.plans.profiles import profile_names

from ..quick_part import quick
from ..reports.audits import changed, finding
from .conftest import write_plan
from .copied_source import CopiedSource

COMMITTED = sorted(evidence_folder().glob("*.json"))
REFUSALS = sorted((evidence_folder() / "refusals").glob("*.json"))
AGAIN = "run `securetm audit full --evidence audits/evidence`"


def stale(evidence: Evidence, trials: Mapping[str, Trial] | None = None) -> tuple[str, ...]:
    """Why kept findings no longer hold, beside the trials of their plan; empty if all do."""
    known = trials_by_hash(kept_results.read_audit_plan(evidence.plan)) if trials is None else trials
    return tuple(dict.fromkeys(reason for one in evidence.findings for reason in changed_since(one, evidence.plan, known)))


@pytest.fixture(scope="module")
def shelf() -> Mapping[str, Mapping[str, Trial]]:
    """The trials of each plan that something was kept of."""
    return {plan: trials_by_hash(read_audit_plan(plan)) for plan in {read_evidence(path).plan for path in COMMITTED}}


# ---- what is committed ---------------------------------------------------------------------------------------------


def test_committed_evidence_speaks_of_what_is_there(shelf: Mapping[str, Mapping[str, Trial]]) -> None:
    found = {path.name: stale(kept := read_evidence(path), shelf[kept.plan]) for path in COMMITTED}
    found |= {path.name: stale_refusals(read_refusals(path)) for path in REFUSALS}
    assert {name: reasons for name, reasons in found.items() if reasons} == {}, AGAIN


def test_every_attack_broke_its_baselines_and_no_claim_of_a_profile() -> None:
    """What an attack can do is shown here, once: its other tests try what it asks, and its arithmetic."""
    kept = [finding for evidence in read_all_evidence(evidence_folder()) for finding in evidence.findings]
    baselines = [one for one in kept if one.attempt.baseline]
    assert {one.attempt.attack for one in baselines} == set(attack_names())
    assert [one.attempt.attack for one in baselines if one.outcome.verdict != REFUTED] == []
    assert [(one.attempt.attack, one.run.profile) for one in kept if one.is_claim and one.outcome.verdict == REFUTED] == []


def test_nothing_recovered_and_no_place_is_committed() -> None:
    for path in (*COMMITTED, *REFUSALS):
        text = path.read_text("utf-8")
        assert not re.search(r'"(examples|curves|original|recovered|run)":', text), path
        assert not re.search(r'"[^"]*(/[a-z]+){2}|\\\\\\\\', text), path


def test_the_whole_plan_was_carried_out() -> None:
    left = remaining(read_audit_plan("full"), read_all_evidence(evidence_folder()))
    missing = [f"{trial.attack} on {', '.join(trial.profiles)}" for trial in left.trials]
    assert not missing, f"audits/evidence lacks {'; '.join(missing)}: {AGAIN}"
    refusals = due_refusals(read_audit_plan("full"), evidence_folder())
    assert not refusals, f"audits/evidence lacks what parties of {', '.join(refusals)} refuse: {AGAIN}"


NAMED_BY_USERS = {"torch-module"}  # a model is what a user's module makes of it; its user audits it


@pytest.mark.slow
def test_the_plan_tries_a_profile_with_every_model_that_it_admits() -> None:
    trials = read_audit_plan("full").trials
    for profile in profile_names():
        tried = {trial.run["model.name"] for trial in trials if profile in trial.profiles}
        admitted = {model for model in MODELS.own if model not in NAMED_BY_USERS and not check(profile, model, None, 5)}
        assert admitted
        assert tried == admitted, profile


# ---- a small audit that is kept ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(documents_file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditPlan, Audit]:
    plan = read_audit_plan(write_plan(tmp_path_factory.mktemp("plan") / "small.toml", documents_file, batch=25))
    return plan, audit(plan)


@pytest.fixture
def folder(small: tuple[AuditPlan, Audit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What was kept of it, with that plan on the shelf."""
    plan, found = small
    monkeypatch.setattr(kept_results, "read_audit_plan", lambda name: plan)
    keep_findings(found.findings, plan, tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["masked--prodlda.json", "open--prodlda.json"]
    return tmp_path


def test_what_is_kept_is_what_was_found(small: tuple[AuditPlan, Audit], folder: Path) -> None:
    masked, unprotected = read_all_evidence(folder)
    assert (masked.profile, masked.model, unprotected.profile) == ("masked", "prodlda", "open")
    for kept, one in zip((unprotected, masked), small[1].findings, strict=True):
        (tried,) = kept.findings
        assert (tried.outcome.verdict, tried.about.claimed) == (one.outcome.verdict, one.about.claimed)
        assert tried.attempt.baseline == one.attempt.baseline
        assert tried.outcome.measured.value == pytest.approx(one.outcome.measured.value)
        assert tried.outcome.measured.low == pytest.approx(one.outcome.measured.low, rel=1e-5, abs=1e-9)
        assert tried.outcome.measured.hits == one.outcome.measured.hits
        assert tried.outcome.measured.of == one.outcome.measured.of
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", tried.run.kept)
        assert tried.run.cores >= 1
        assert set(tried.attempt.bound) == BOUND  # neither claims an epsilon, so no accounting is behind it
        assert tried.attempt.tests == one.attempt.tests == 1
        assert all(re.fullmatch("[0-9a-f]{64}", value) for value in tried.attempt.bound.values())
        assert stale(kept) == ()


def test_no_word_of_a_document_is_kept(small: tuple[AuditPlan, Audit], folder: Path) -> None:
    (first, *_) = small[1].findings[0].outcome.examples  # it was recovered, and is in the finding
    words = re.findall(r"[a-z]{6,}", first.original)
    assert words
    text = (folder / "open--prodlda.json").read_text("utf-8")
    assert not [word for word in words if word in text]


def test_what_was_kept_before_is_replaced_what_was_not_tried_again_stays_and_what_is_no_longer_tried_goes(
    small: tuple[AuditPlan, Audit], folder: Path
) -> None:
    plan, found = small
    harder = replace(plan.trials[0], effort={"rounds": 1, "documents": 10})
    more = replace(plan, trials=(*plan.trials, harder))
    for made, listed, kept in (
        (found.findings, plan, [1, 1]),
        (_of_trial(found, harder), more, [2, 2]),
        (found.findings, more, [2, 2]),
        (found.findings, plan, [1, 1]),
    ):
        keep_findings(made, listed, folder)
        assert [len(evidence.findings) for evidence in read_all_evidence(folder)] == kept


def _of_trial(found: Audit, trial: Trial) -> tuple[Finding, ...]:
    """The same findings as another trial would have given them."""
    return tuple(changed(one, bound={**one.attempt.bound, "trial": trial_hash(trial)}) for one in found.findings)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("attack", "the attack gradient_inversion changed since"),
        ("profile", "the profile masked changed since"),
        ("mechanisms", "a mechanism of the profile masked changed since"),
        ("aggregation", "the aggregation of the profile masked changed since"),
        ("threat model", "the threat model curious_coordinator changed since"),
        ("corpus", "the making of the documents changed since"),
        ("judging", "the making of intervals and verdicts changed since"),
    ],
)
def test_each_change_has_its_name(folder: Path, what: str, said: str) -> None:
    path = folder / "masked--prodlda.json"
    plain = json.loads(path.read_text("utf-8"))
    plain["findings"][0]["bound"][what] = "0" * 64
    path.write_text(json.dumps(plain), "utf-8")
    assert stale(read_evidence(path)) == (said,)


def test_a_trial_that_the_plan_no_longer_has_is_stale(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = kept_results.read_audit_plan("small")
    other = replace(plan, trials=(replace(plan.trials[0], confidence=0.99),))
    monkeypatch.setattr(kept_results, "read_audit_plan", lambda name: other)
    (reason,) = stale(read_evidence(folder / "masked--prodlda.json"))
    assert reason == "the plan small no longer tries gradient_inversion this way on masked"


# ---- only what changed is tried again ------------------------------------------------------------------------------


def test_a_new_profile_is_tried_beside_the_baseline_alone(small: tuple[AuditPlan, Audit], folder: Path) -> None:
    plan = small[0]
    wider = replace(plan, trials=(replace(plan.trials[0], profiles=("open", "masked", "masked_strict")),))
    (trial,) = remaining(wider, read_all_evidence(folder)).trials
    assert trial.profiles == ("open", "masked_strict")


def test_where_the_baseline_is_stale_all_is_tried_again(small: tuple[AuditPlan, Audit], folder: Path) -> None:
    (folder / "open--prodlda.json").unlink()
    assert remaining(small[0], read_all_evidence(folder)).trials == small[0].trials


def test_an_interrupted_audit_goes_on_where_it_was(
    small: tuple[AuditPlan, Audit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, found = small
    other = replace(plan.trials[0], run={**plan.trials[0].run, "seed": 5})
    longer = replace(plan, trials=(*plan.trials, other))
    asked: list[Trial] = []

    def interrupted(trial: Trial, *_: object) -> tuple[Finding, ...]:
        asked.append(trial)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return _of_trial(found, trial)

    monkeypatch.setattr(runner, "findings", interrupted)
    with pytest.raises(KeyboardInterrupt):
        audit(longer, evidence=tmp_path)
    for _ in range(2):
        whole = audit(longer, evidence=tmp_path)
        assert [one.attempt.bound["trial"] for one in whole.findings[::2]] == [trial_hash(one) for one in longer.trials]
    assert asked == [*plan.trials, other, other]
    assert all(one.run.kept for one in whole.findings)
    assert whole.made == ""  # nothing was made now


# ---- tests of an epsilon are corrected for their number --------------------------------------------------------------


def _kept_of(trial: Trial, epsilon: float | None, tests: int) -> Evidence:
    """What was kept of a trial of an epsilon, by the figures of another."""
    figure = Measured(trial.measure, "epsilon that one sum claims", 0.9, 0.8, 0.95, 9.0)
    facts = {"measured": figure, "verdict": NOT_REFUTED, "refuted_from": 1.0, "epsilon": epsilon, "tests": tests}
    run = {"profile": "dp-local", "model": "lda", "bound": bound_to(trial, "dp-local")}
    return Evidence("dp-local", "lda", "small", (to_keep(finding(**facts, **run)),))


def test_a_result_that_was_corrected_for_fewer_tests_than_there_are_now_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = of_noise()
    more = replace(trial, profiles=("open", "dp-central", "dp-distributed"), effort={"rounds": 1, "runs": 4})
    alone, wider = (replace(read_audit_plan("quick"), name="small", trials=trials) for trials in ((trial,), (trial, more)))
    kept = _kept_of(trial, 4.4, 1)
    monkeypatch.setattr(kept_results, "read_audit_plan", lambda name: alone)
    assert stale(kept) == ()
    assert remaining(alone, [kept]).trials[0].profiles == trial.profiles  # for the baseline, which was not kept
    monkeypatch.setattr(kept_results, "read_audit_plan", lambda name: wider)
    assert stale(kept) == ("it was corrected for 1 tests of an epsilon, and the plan small makes 3 now",)
    assert not still_fresh(trial, "dp-local", [kept], 3)
    assert still_fresh(trial, "dp-local", [_kept_of(trial, 4.4, 3)], 3)
    assert still_fresh(trial, "dp-local", [_kept_of(trial, 4.4, 9)], 3)  # a plan that has fewer by now: it is only too careful
    assert still_fresh(trial, "dp-local", [_kept_of(trial, None, 1)], 3)  # a baseline claims nothing that is corrected


def test_claims_are_counted_on_each_profile_that_makes_one() -> None:
    trial = of_noise()
    assert count_of_tests([trial]) == 1
    assert count_of_tests([replace(trial, profiles=("open", "masked", "dp-local", "dp-central"))]) == 2  # masked claims none
    assert count_of_tests([replace(trial, expect_fail="dp-local")]) == 0
    assert count_of_tests([replace(trial, claim="sees only sums"), read_audit_plan("quick").trials[0]]) == 0
    assert 1 - corrected(0.999, 7) == pytest.approx(0.001 / 7)
    assert corrected(0.95, 0) == 0.95


# ---- damage --------------------------------------------------------------------------------------------------------


def test_an_older_format_is_refused_by_name_and_with_advice(small: tuple[AuditPlan, Audit], folder: Path) -> None:
    path = folder / "open--prodlda.json"
    content = json.loads(path.read_text("utf-8"))
    for older in ({**content, "format": FORMAT - 1}, {name: content[name] for name in content if name != "format"}):
        path.write_text(json.dumps(older), "utf-8")
        with pytest.raises(Failed, match=rf"open--prodlda.*it is of format 1, and this version reads format {FORMAT}") as old:
            read_all_evidence(folder)
        assert "make it again with `securetm audit full --evidence FOLDER`" in old.value.advice()


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "a word for a number": ({"low": "much"}, "`low` in finding 1: expected `float`, got `str`"),
    "a field that there is not": ({"secure": True}, "there is no field called 'secure' in finding 1"),
    "a verdict that there is not": ({"verdict": "safe"}, "`verdict` in finding 1: expected"),
    "an improved verdict": ({"verdict": "not refuted"}, "finding 1: the verdict of gradient_inversion does not follow"),
    "another profile": ({"profile": "masked"}, "finding 1 is of masked with prodlda"),
    "nothing that it depends on": ({"bound": {}}, "has no hashes"),
    "no number": ({"value": float("nan")}, "JSON is malformed"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_damage_is_told_with_its_place_in_the_file(folder: Path, name: str) -> None:
    path, (change, said) = folder / "open--prodlda.json", CHANGES[name]
    content = json.loads(path.read_text("utf-8"))
    content["findings"][0] |= change
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(Failed, match=said):
        read_evidence(path)


def test_evidence_is_read_without_arithmetic() -> None:
    code = "import sys; from securetm.auditing.evidence import *; read_all_evidence(evidence_folder()); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600).stdout.split()
    assert not {"torch", "scipy", "numba", "sklearn", "pandas"} & set(found)


# ---- what a result is bound to ---------------------------------------------------------------------------------------------


BOUND = {"profile", "mechanisms", "aggregation", "corpus", "threat model", "attack", "judging", "trial"}


MEASURE = "share of one sum's epsilon that is shown, if the noise is Gaussian"
KNOWN: dict[str, Mapping[str, str]] = {}


@cache
def of_noise() -> Trial:
    """A trial of an epsilon."""
    found = [t for t in read_audit_plan("empirical_epsilon").trials if t.attack == "many_run_epsilon" and t.measure == MEASURE]
    return replace(found[0], profiles=("open", "dp-local"))


def _unchanged(trial: Trial, profile: str) -> Mapping[str, str]:
    """What a result is bound to by the source as it is: to be asked before a test changes anything."""
    key = f"{trial} {profile}"
    if key not in KNOWN:
        KNOWN[key] = bound_to(trial, profile)
    return KNOWN[key]


def _modules(roots: tuple[str, ...], within: tuple[str, ...]) -> set[str]:
    return {module for module, _ in closure(roots, within)}


def test_an_attack_is_bound_to_all_that_it_is_made_of_and_not_to_the_frame() -> None:
    made_of = _modules(("auditing.attacks.gradient_inversion",), ("auditing.",))
    assert {"auditing.attacks.gradient_inversion", "auditing.parts.gradients", "auditing.views", "auditing.attack"} <= made_of
    assert not made_of & {"auditing.runner", "auditing.evidence", "auditing.attacks.traffic"}


def test_an_aggregation_is_bound_to_helpers_that_it_starts_by_name() -> None:
    within = ("aggregation.", "mechanisms.")
    assert "aggregation.homomorphic.worker" in _modules(("aggregation.homomorphic.bfv",), within)
    assert _modules(("aggregation.plain:PlainSum",), within) == {"aggregation.plain", "aggregation.vectors"}


def test_a_part_of_another_package_is_bound_with_what_it_uses_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from securetm.auditing.verdicts import corrected\ndef attack(): return corrected()\n"
    (tmp_path / "somebodys_attack.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {("auditing.verdicts", "corrected"), ("somebodys_attack", "attack")} <= closure(
        ("somebodys_attack",), ("auditing.",)
    )
    with pytest.raises((FileNotFoundError, ModuleNotFoundError)):
        closure(("nobodys_attack",), ("auditing.",))


MAKES_STALE: dict[str, set[str]] = {
    "accounting/composition.py": {"accounting"},  # what makes one epsilon of all answers
    "accounting/losses.py": {"accounting"},
    "accounting/ledger/accounts.py": {"accounting"},
    "federation/budget/prices.py": {"accounting"},
    "corpus/docstrings.py": {"corpus"},
    "corpus/tokeniser.py": {"corpus"},
    "corpus/readers.py": {"corpus"},  # who deals documents out knows files, too
    "corpus/word_vectors.py": set(),
    "federation/sources.py": {"corpus"},
    "mechanisms/gaussian_noise.py": {"mechanisms"},
    "answers/route.py": {"mechanisms"},
    "auditing/attack.py": {"attack"},
    "auditing/views.py": {"attack"},
    "auditing/parts/empirical_epsilon.py": {"attack"},
    "auditing/verdicts.py": {"attack", "judging"},
    "auditing/judging.py": {"judging"},
    "auditing/ground_truth.py": {"judging"},
    "auditing/plans.py": set(),
    "auditing/roles.py": set(),  # nobody lies in this trial
    "auditing/runner.py": set(),
    "cli/main.py": set(),
}
FEW = ("corpus/docstrings.py",)


@pytest.mark.parametrize("changed", quick(MAKES_STALE, *FEW))
def test_what_a_changed_file_makes_stale(copied: CopiedSource, changed: str) -> None:
    before = _unchanged(of_noise(), "dp-local")
    assert set(before) == BOUND | {"accounting"}
    copied.change(changed)
    after = bound_to(of_noise(), "dp-local")
    assert {name for name in before if before[name] != after[name]} == MAKES_STALE[changed]


def test_moving_code_makes_nothing_stale_and_another_operator_does(copied: CopiedSource) -> None:
    trial = of_noise()
    before = _unchanged(trial, "dp-local")
    for old, new in (
        ("auditing/parts/empirical_epsilon.py", "auditing/shown_epsilon.py"),
        ("accounting/losses.py", "accounting/ledger/losses.py"),
        ("mechanisms/noise_laws.py", "mechanisms/compiled_noise.py"),
    ):
        copied.move(old, new)
    assert bound_to(trial, "dp-local") == before
    copied.change("accounting/ledger/losses.py", lambda text: text.replace(" + ", " - ", 1))
    changed = bound_to(trial, "dp-local")
    assert {name for name in before if before[name] != changed[name]} == {"accounting"}


def _digests(path: Path) -> list[bytes]:
    source = bindings.code_of(path)
    return [made.digest for made in (*source.definitions.values(), *source.statements)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x = 1", "x = 1  # why", True),
        ("x = (1 +\n 2)", "x = 1 + 2", True),
        ('def f():\n    """Says."""\n    return 1', "def f():\n    return 1", True),
        ('class A:\n    """Says."""\n    x = 1', 'class A:\n    """Says else."""\n    x = 1', True),
        ("import a\nx = 1", "from b import a\nx = 1", True),
        ("x = 'securetm.a.b:C'", "x = 'securetm.d:C'", True),
        ("x = 'securetm.a.b:C'", "x = 'securetm.a.b:D'", False),
        ("x = 1", "x = 2", False),
        ("x = 1", 'x = "1"', False),
        ("x = 1", "x = 1.0", False),
        ("x = 1", "x = True", False),
        ("x = b'a'", "x = 'a'", False),
        ("x = ''", "x = None", False),
        ("x = f(a)", "x = f(*a)", False),
        ("x = [1, 2]", "x = [[1], 2]", False),
        ("def f(a, *, b): ...", "def f(a, b): ...", False),
        ("def f(*, b=None): ...", "def f(*, b): ...", False),
        ('x = 1\n"""Not a docstring."""', "x = 1", False),
        ("a < b < c", "a < b > c", False),
        ("def f(): return", "def f(): return None", False),
    ],
)
def test_only_what_code_does_is_in_its_digest(tmp_path: Path, one: str, other: str, same: bool) -> None:
    for name, text in (("one.py", one), ("other.py", other)):
        (tmp_path / name).write_text(text + "\n", "utf-8")
    assert (_digests(tmp_path / "one.py") == _digests(tmp_path / "other.py")) == same


def test_the_digest_of_known_code_is_the_same_under_every_version_of_python(tmp_path: Path) -> None:
    text = "import os\n\nasync def f[T](a: T, /, *b, c=1, **d):\n" if False else "def f(a, /, *b, c=1, **d):\n"
    text += "    with open(a) as g, h: yield f'{a!r:>{c}} b'\n    match a:\n        case [1, *x] if x: return None\n"
    (tmp_path / "known.py").write_text(text, "utf-8")
    assert [digest.hex()[:16] for digest in _digests(tmp_path / "known.py")] == ["28345b499bd21d10"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "lies"),
    quick([("liars", "auditing/roles.py"), ("meddled", "auditing/roles.py")], ("liars", "auditing/roles.py")),
)
def test_a_result_is_bound_to_who_lied_for_it(copied: CopiedSource, setting: str, lies: str) -> None:
    trial = replace(of_noise(), **{setting: 1})
    before = _unchanged(trial, "open")
    copied.change(lies)
    assert bound_to(trial, "open")["attack"] != before["attack"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "stale"),
    quick([("auditing/ground_truth.py", True), ("corpus/word_vectors.py", False)], ("auditing/ground_truth.py", True)),
)
def test_made_documents_are_bound_to_what_makes_them(copied: CopiedSource, changed: str, stale: bool) -> None:
    trial = replace(of_noise(), canaries=10)
    before = _unchanged(trial, "open")
    copied.change(changed)
    assert (bound_to(trial, "open") != before) == stale
