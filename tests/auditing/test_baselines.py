"""Every attack breaks what nothing protects: a trial whose baseline holds proves nothing, so baselines are carried out here.

An attack is tried as the first plan has it that tries it; every trial of every plan, and what takes long, in the slow suite.
The plan `full` is left out: its results are kept, and tests/auditing/test_evidence.py reads them. Trials take fewer
rounds and documents here, which makes it harder for the attacks. In the quick suite the documents are made up.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from securetm.auditing.plans import AuditPlan, audit_plan_names, read_audit_plan
from securetm.auditing.runner import audit

from ..quick_part import quick
from .conftest import PARTIES, texts

FIRST, WHOLE = "quick", "full"
# Their attacks break small runs in test files of their own; lengths of words are those of English only where texts are real.
LONG = ("active", "collusion", "counts", "empirical_epsilon", "gradient_matching", "membership", "traffic")
# They need more documents, embeddings or a clock that no machine slows down: test_membership.py and test_traffic.py break small
# runs with some of them, and what is kept of all is read by test_evidence.py.
ELSEWHERE = (
    *("membership", "membership_counts", "centre_inversion", "centre_difference"),
    *(BY_CLOCK := ("answer_times",)),
)
QUICK = ("gradient_inversion", "count_reconstruction", "vocabulary_leakage")  # what is read in a moment
PLANS = (FIRST, *(name for name in audit_plan_names() if name not in (FIRST, WHOLE)))


def baselines_of(name: str, **most: int) -> AuditPlan:
    """The plan with each trial on its baseline alone, with no more effort than that."""
    plan = read_audit_plan(name)
    tried = [one for one in plan.trials if one.attack not in BY_CLOCK]
    trials = [replace(one, profiles=(one.expect_fail,), effort=_less(one.effort, most)) for one in tried]
    different = tuple(one for place, one in enumerate(trials) if one not in trials[:place])
    return replace(plan, trials=different, refusals=(), moves=())


def _less(effort: dict[str, int], most: dict[str, int]) -> dict[str, int]:
    return {name: min(amount, most.get(name, amount)) for name, amount in effort.items()}


def firsts() -> dict[str, AuditPlan]:
    """Of each plan, the trials of attacks that no plan before it tries, and the first of each."""
    met = set(ELSEWHERE)
    found = {}
    for name in PLANS:
        plan, new = baselines_of(name, rounds=2, documents=100, states=4), []
        for trial in plan.trials:
            if trial.attack not in met:
                met.add(trial.attack)
                new.append(trial)
        found[name] = replace(plan, trials=tuple(new))
    return {name: plan for name, plan in found.items() if plan.trials}


def check_refuted(plan: AuditPlan) -> None:
    found = audit(plan)
    assert found.findings
    held = [one for one in found.findings if one.outcome.verdict != "refuted"]
    assert [f"{one.attempt.attack} on {one.run.model}: {one.outcome.why}" for one in held] == []


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where the documents of five parties lie: long ones, of many words, some of which one party alone has."""
    path = tmp_path_factory.mktemp("documents") / "documents.jsonl"
    rows = [
        {"text": f"{text} {party}{chr(97 + place // 8)}", "party": party}
        for seed, party in enumerate(PARTIES)
        for place, text in enumerate(texts(120, seed, words=4_000, length=(30, 60)))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return {"corpus.source": str(path), "corpus.party": "party", "corpus.partition": "column"}


@pytest.mark.parametrize("few", quick([True, False], True))
@pytest.mark.parametrize("name", [name for name in firsts() if name not in LONG])
def test_every_attack_breaks_its_baseline(name: str, few: bool, source: dict[str, str]) -> None:
    plan = firsts()[name]
    tried = [trial for trial in plan.trials if trial.attack in QUICK or not few]
    check_refuted(replace(plan, trials=tuple(replace(trial, run={**trial.run, **source}) for trial in tried)))


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_every_baseline_of_the_plan_is_refuted(name: str) -> None:
    check_refuted(baselines_of(name, shadows=30))


def test_no_attack_is_left_out() -> None:
    tried = {trial.attack for plan in firsts().values() for trial in plan.trials}
    assert tried | set(ELSEWHERE) == {trial.attack for name in PLANS for trial in read_audit_plan(name).trials}
