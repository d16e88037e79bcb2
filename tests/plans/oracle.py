"""What plans came to before `recommend` made them: settings, terms, noise and spends of every model under every profile.

`python -m tests.plans.oracle` compares the committed record with what is resolved now; `--write` writes it anew, which only a
deliberate change of a rule, a mechanism or a model may ask for.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from securetm.answers.route import compile_route
from securetm.errors import Misuse, Unsound
from securetm.federation.budget.prices import calibrated, spend_of
from securetm.federation.questions import COHERENCE, HELD_OUT, TRAIN, Questions, before_training
from securetm.federation.soundness import check_answerable
from securetm.plans.agreement import Agreement, agree
from securetm.plans.profiles import cohort_of
from securetm.plans.recommend import plan_from_tables
from securetm.resources import toml_names

FILE = Path(__file__).with_name("oracle.json")
PARTIES = 5
LENGTHS = {"short": (20_000, 5.0), "long": (2_000, 150.0)}  # documents, and words of each
UNITS = ("document", "person")
MODELS = (
    "combined-tm", "fednmf", "lda", "lda-matched", "lda-vi", "moments", "neural-lda", "nmf", "prodlda", "sentence-lda",
    "sentence-lda-matched", "zeroshot-tm",
)  # fmt: skip
SPOKEN = {  # a plan that says one thing more, or much less: by name, what is added to profile and model
    "nothing": {"documents": 0},
    "rounds": {"training": {"rounds": 10}},
    "epochs": {"training": {"epochs": 3.0}},
    "plain": {"training": {"start": "plain"}},
    "moments": {"training": {"start": "moments"}},
    "epsilon": {"privacy": {"epsilon": 2.0}},
    "noise": {"privacy": {"noise": 2.0}},
    "german": {"vocabulary": {"file": "german+private"}},
    "english": {"vocabulary": {"file": "english"}},
    "words": {"vocabulary": {"max_words": 300}},
    "topics": {"model": {"n_topics": 7, "totals": 0.25}},
}
SPOKEN_OF = [(model, profile) for model in ("lda-vi", "lda", "prodlda") for profile in ("masked", "dp-distributed")]


def cases() -> list[tuple[str, str, str, str]]:
    """Model, profile, length (or the name of what is said), unit."""
    whole = [(m, p, n, u) for m in MODELS for p in toml_names("protocols", "profiles") for n in LENGTHS for u in UNITS]
    return whole + [(m, p, said, "document") for m, p in SPOKEN_OF for said in SPOKEN]


def tables_of(model: str, profile: str, length: str, unit: str) -> dict[str, Any]:
    """What such a plan says."""
    more: Mapping[str, Any] = SPOKEN.get(length, {})
    tables: dict[str, Any] = {"profile": profile, "model": {"name": model, **more.get("model", {})}}
    tables |= {name: dict(more[name]) for name in ("privacy", "vocabulary") if name in more}
    tables["training"] = dict(more.get("training", {}))
    if "documents" not in more:
        documents, words = LENGTHS.get(length, (5_000, 30.0))
        tables["training"] |= {"documents": documents, "document_length": words}
        tables["federation"] = {"parties": PARTIES}
    if unit == "person":
        tables["privacy"] = {**tables.get("privacy", {}), "unit": "person"}
        tables["training"]["persons"] = tables["training"]["documents"] // 2
    return tables


def resolved(model: str, profile: str, length: str, unit: str) -> dict[str, Any]:
    """The settings of the plan, and for each question its terms, noise and spend; the refusal of one that is not sound."""
    try:
        agreement = agree(plan_from_tables(tables_of(model, profile, length, unit), "the oracle"))
        check_answerable(agreement, PARTIES)
        if model == "lda-vi" and unit == "document":  # sizing the noise takes a second each
            agreement = calibrated(agreement, PARTIES)
    except (Misuse, Unsound) as refusal:
        return {"refused": [type(refusal).__name__, " ".join(str(refusal).split()[:12])]}
    return {"settings": settings_of(agreement), "questions": questions_of(agreement)}


def settings_of(agreement: Agreement) -> dict[str, Any]:
    plan = agreement.plan
    sections = ("vocabulary", "model", "training", "privacy", "federation")
    return {name: dataclasses.asdict(getattr(plan, name)) for name in sections}


def questions_of(agreement: Agreement) -> dict[str, str]:
    """By question, the canonical text of its route and of what an answer spends."""
    profile = agreement.profile
    members = tuple(f"party {n}" for n in range(PARTIES))
    questions = Questions(agreement, agreement.longest_list[:60])
    start = agreement.model.start(questions.vocabulary, np.random.default_rng(0))
    about = {name: questions.shown(name, start, "") for name in (TRAIN, HELD_OUT)}
    about[COHERENCE] = {"top": np.arange(5).reshape(1, 5)}
    found = {}
    for name in (*before_training(agreement), TRAIN, *(() if questions.paid else (COHERENCE, HELD_OUT))):
        route = compile_route(questions.make(name, about.get(name, {})).terms, profile, cohort_of(profile, members))
        steps = [f"{step.mechanism!r} {step.event!r} {step.failure_probability!r}" for step in route.steps]
        found[name] = _canonical(f"{questions.times(name)} times; {route.terms!r}; {'; '.join(steps)}; {spend_of(route)!r}")
    return found


def _canonical(text: str) -> str:
    """The text with numbers to nine digits, since processors differ in the last bits, and without addresses."""
    short = re.sub(r"\d+\.\d+(?:e[+-]?\d+)?", lambda number: f"{float(number[0]):.9g}", text)
    return re.sub(r" at 0x[0-9a-f]+", "", short)


def record(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """All cases with each long text once, by its hash."""
    texts: dict[str, Any] = {}

    def kept(content: Any) -> str:
        key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]
        texts[key] = content
        return key

    cases = {}
    for name, one in found.items():
        told = {key: {part: kept(said) for part, said in one[key].items()} for key in one if key != "refused"}
        cases[name] = told or dict(one)
    return {"cases": cases, "texts": texts}


def committed(name: str) -> dict[str, Any]:
    """The committed case of that name, in full."""
    whole = _whole()
    return {
        key: said if key == "refused" else {part: whole["texts"][text] for part, text in said.items()}
        for key, said in whole["cases"][name].items()
    }


def _whole() -> Any:
    return json.loads(FILE.read_text())


def plain(found: Mapping[str, Any]) -> Any:
    """As it comes back from JSON."""
    return json.loads(json.dumps(found))


if __name__ == "__main__":
    now = {" ".join(case): plain(resolved(*case)) for case in cases()}
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(record(now), indent=0, sort_keys=True) + "\n")
    different = [name for name, one in now.items() if committed(name) != one]
    for name in different:
        print(name)
        print("  was", committed(name))
        print("  is ", now[name])
    print(f"{len(now)} cases, {len(different)} different")
