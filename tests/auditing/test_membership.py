"""Membership on real runs: what a model remembers gives documents away, and noise of epsilon 1 keeps them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from securetm.auditing.attack import Estimate, GroundTruth, Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.parts.membership_game import INSIDE, allowed, found, ordered, pose, shadows_of, training
from securetm.auditing.record import NOT_REFUTED, REFUTED, Finding
from securetm.auditing.recorded import claimed_by, public_facts, questions_of, view_of
from securetm.auditing.runner import audit
from securetm.auditing.views import AdversaryView, NotTestable, PublicFacts
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.models.given_documents import as_documents
from securetm.models.neural.neural_lda import NeuralLDA
from securetm.plans.agreement import agree
from securetm.plans.profiles import read_profile
from securetm.plans.recommend import plan_from_tables

from .conftest import PARTIES, adversary, made_run, texts

RATIO, LOSS, COUNTS = "likelihood ratio", "loss", "word counts"
SHADOWS = 12
READER = ("model reader", "model_reader")
COORDINATOR = ("coordinator", "private_answers")


@pytest.fixture(scope="module")
def many() -> Mapping[str, Corpus]:
    """Enough documents for a threshold at one false alarm in a hundred: about 450 are trained on, as many held out."""
    return {name: Corpus.from_strings(texts(180, seed, words=900), name=name) for seed, name in enumerate(PARTIES)}


Made = Callable[..., RunFolder]


@pytest.fixture(scope="module")
def made(many: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Recorded runs over these documents, each once."""
    runs: dict[tuple[str, ...], RunFolder] = {}

    def run(profile: str, model: str, rounds: int = 4, /, **sections: Mapping[str, Any]) -> RunFolder:
        key = (profile, model, str(rounds), json.dumps(sections, sort_keys=True))
        if key not in runs:
            runs[key] = _run(tmp_path_factory.mktemp("run") / "recorded", many, profile, model, rounds, sections)
        return runs[key]

    return run


def _run(
    path: Path, parties: Mapping[str, Corpus], profile: str, model: str, rounds: int, sections: Mapping[str, Mapping[str, Any]]
) -> RunFolder:
    words = path.parent / "words.txt"
    words.write_text("\n".join(sorted({word for corpus in parties.values() for word in corpus.vocabulary})), "utf-8")
    tables: dict[str, Any] = {
        "profile": profile,
        "model": {"name": model, "n_topics": 4, **({"sweeps": 2} if model == "lda" else {})},
        "training": {"rounds": rounds, "held_out": 0.5},
        "vocabulary": {"source": "file", "file": str(words)},
        "origins": {"vocabulary": "made up"},
        **sections,
    }
    return made_run(path, parties, tables)


def _put(folder: RunFolder, name: str, who: tuple[str, str], effort: Mapping[str, int]) -> tuple[AdversaryView, GroundTruth]:
    """As the audit puts it: the question, and what is prepared with neither model nor messages in sight."""
    attack, eyes = attack_called(name), adversary(*who)
    view = view_of(folder, eyes, attack, effort["rounds"])
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, effort["rounds"]).values())
    posed = pose(truth, effort, np.random.default_rng(0))
    view, truth = replace(view, question=posed.question), replace(truth, answer=posed.answer)
    if attack.prepare is not None:
        view = replace(view, prepared=attack.prepare(replace(view, seen={}, weights=None), effort))
    return view, truth


def _told(view: AdversaryView, truth: GroundTruth, name: str, effort: Mapping[str, int]) -> Score:
    attack = attack_called(name)
    return attack.judge(attack.attack(view, effort), truth)


def _order(judged: Score, how: str) -> Estimate:
    worth = judged.measures[ordered(how)]
    assert isinstance(worth, Estimate)
    return worth


def _hits(judged: Score, how: str) -> Proportion:
    worth = judged.measures[found(0.01, how)]
    assert isinstance(worth, Proportion)
    return worth


@pytest.mark.parametrize("model", ["lda", "lda-vi"])
def test_a_finished_model_remembers_who_was_in_it(made: Made, model: str) -> None:
    effort = {"rounds": 1, "shadows": SHADOWS}
    view, truth = _put(made("open", model), "membership", READER, effort)
    told, chance = (_told(eyes, truth, "membership", effort) for eyes in (view, of_chance(view, 1)))
    assert _order(told, RATIO).low > 0.5
    assert _order(told, RATIO).value > _order(told, LOSS).value + 0.05
    assert _order(chance, RATIO).low < 0.5 < _order(chance, RATIO).high
    assert _order(chance, LOSS).low < 0.5 < _order(chance, LOSS).high
    assert _hits(told, RATIO).of > 300
    assert _hits(told, RATIO).hits > 0.03 * _hits(told, RATIO).of  # three times what chance may reach
    assert _hits(chance, RATIO).hits < 0.03 * _hits(chance, RATIO).of
    assert [drawn.label for drawn in told.curves] == [RATIO, LOSS, "chance"]


def test_released_counts_name_their_documents(made: Made) -> None:
    view, truth = _put(made("open", "lda"), "membership_counts", READER, {"rounds": 1})
    told, chance = (_told(eyes, truth, "membership_counts", {"rounds": 1}) for eyes in (view, of_chance(view, 1)))
    assert _order(told, COUNTS).low > 0.8
    assert _hits(told, COUNTS).hits > 0.5 * _hits(told, COUNTS).of
    assert _order(chance, COUNTS).low < 0.5 < _order(chance, COUNTS).high


def test_a_secure_sum_takes_nothing_from_whoever_sees_totals(made: Made) -> None:
    effort = {"rounds": 2, "shadows": SHADOWS}
    view, truth = _put(made("masked", "lda"), "membership_transcript", COORDINATOR, effort)
    told, chance = (_told(eyes, truth, "membership_transcript", effort) for eyes in (view, of_chance(view, 1)))
    assert _order(told, RATIO).low > 0.5
    assert _order(told, COUNTS).low > 0.8
    assert all(_order(chance, how).low < 0.5 < _order(chance, how).high for how in (RATIO, LOSS, COUNTS))


def test_shadow_models_learn_as_the_federation_does(made: Made) -> None:
    """Trained on the very documents of the run, a shadow of a model without chance in it becomes the run's own model."""
    folder = made("masked", "lda-vi")
    truth = ground_truth_of(folder, [])
    posed, public = pose(truth, {}, np.random.default_rng(0)), public_facts(folder)
    attack = attack_called("membership")
    members = np.flatnonzero(posed.answer == INSIDE)
    assert len(members) == sum(counts.shape[0] for counts in truth.held.values())
    *_, (number, total, state) = training(posed.question, members, truth.vocabulary, public, np.random.default_rng(0))
    released = view_of(folder, adversary(*READER), attack, 1).model_state()
    assert number == public.plan.training.rounds - 1
    assert np.allclose(total["counts"], state["counts"], atol=1e-3)
    assert np.allclose(released["counts"], state["counts"], atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "who"), [("dp-central", READER), ("dp-distributed", COORDINATOR)])
@pytest.mark.parametrize("model", ["lda", "lda-vi"])
def test_at_epsilon_one_no_more_is_told_than_it_allows(made: Made, profile: str, who: tuple[str, str], model: str) -> None:
    folder = made(profile, model, 2, privacy={"epsilon": 1.0})
    claimed = claimed_by(folder)
    assert claimed is not None
    assert 0.9 < claimed.epsilon <= 1.0
    name = "membership" if who is READER else "membership_transcript"
    effort = {"rounds": 2, "shadows": 6}
    view, truth = _put(folder, name, who, effort)
    told = _told(view, truth, name, effort)
    for how in (RATIO, LOSS) if who is READER else (RATIO, LOSS, COUNTS):
        assert _order(told, how).low < allowed(ordered(how), claimed) == pytest.approx(0.731, abs=0.01)
        assert _order(told, how).value < 0.6  # five deviations above chance: these attacks tell nothing at all


def test_a_coordinator_that_adds_the_noise_tells_members_by_sums_that_have_none(made: Made) -> None:
    """Its own transcript and its own shadow models: neither has the noise in it that readers of the model meet."""
    folder = made("dp-central", "lda", 2, privacy={"epsilon": 1.0})
    effort = {"rounds": 1, "shadows": 3}
    view, truth = _put(folder, "membership_transcript", ("coordinator", "model_reader"), effort)
    told, chance = (_told(eyes, truth, "membership_transcript", effort) for eyes in (view, of_chance(view, 1)))
    assert _order(told, COUNTS).low > 0.8
    assert _order(chance, COUNTS).low < 0.5 < _order(chance, COUNTS).high
    public, candidates = public_facts(folder), view.question
    words = truth.vocabulary
    rounds = training(candidates, np.arange(0, candidates.shape[0], 2), words, public, np.random.default_rng(0))
    assert all(total["counts"].min() >= 0 for _, total, _ in rounds)


def test_the_fit_to_a_network_is_that_of_its_encoder(made: Made) -> None:
    """An encoder may remember a document; the topics by which neural-lda predicts other words do not know it."""
    folder, effort = made("open", "neural-lda", 2), {"rounds": 1, "shadows": 10}
    view, _ = _put(folder, "membership", READER, effort)
    model, state = folder.agreement.model, view.model_state()
    assert isinstance(model, NeuralLDA)
    documents = as_documents(view.question, view.vocabulary())
    by_encoder, by_topics = (
        model.encoded_likelihood(state, documents, documents),
        model.log_likelihood(state, documents, documents),
    )
    told = attack_called("membership").attack(view, effort)
    assert isinstance(told, Mapping)
    np.testing.assert_allclose(told["loss"], by_encoder / view.question.sum(axis=1), rtol=1e-6)
    assert np.abs(by_topics - by_encoder).max() > 1e-3


def test_noise_inside_documents_is_not_simulated(made: Made) -> None:
    facts = public_facts(made("open", "lda"))
    public = replace(facts, agreement=replace(facts.agreement, profile=read_profile("iftm")))
    candidates = pose(ground_truth_of(made("open", "lda"), []), {}, np.random.default_rng(0)).question
    with pytest.raises(NotTestable, match="iftm"):
        shadows_of(candidates, ("a", "b"), public, 4, lambda *_: np.zeros(0))


@pytest.mark.parametrize("model", [{"name": "lda"}, {"name": "lda-vi", "batch_size": 5}])
def test_where_persons_are_protected_each_candidate_is_somebodys(tmp_path: Path, model: dict[str, Any]) -> None:
    """Nobody knows whose a candidate is; its shadow models have to draw persons, and bound each, all the same."""
    (tmp_path / "words.txt").write_text("a\nb\nc", "utf-8")
    tables = {
        "profile": "dp-central",
        "model": {"n_topics": 2, **model},
        "training": {"rounds": 2, "held_out": 0.5},
        "vocabulary": {"source": "file", "file": str(tmp_path / "words.txt")},
        "origins": {"vocabulary": "made up"},
        "privacy": {"unit": "person"},
    }
    plan = plan_from_tables(tables, "a test")
    public = PublicFacts(PARTIES, agree(plan))
    counts = sparse.csr_array(np.random.default_rng(0).integers(1, 3, (400, 3)))
    rounds = list(training(counts, np.arange(0, 400, 2), ("a", "b", "c"), public, np.random.default_rng(0)))
    assert [number for number, _, _ in rounds] == [0, 1]
    assert all(total["counts"].sum() > 0 for _, total, _ in rounds)


def test_a_run_that_ended_early_is_no_match_for_its_shadows(made: Made) -> None:
    effort = {"rounds": 2, "shadows": 3}
    view, _ = _put(made("open", "lda"), "membership_transcript", COORDINATOR, effort)
    agreement = view.public.agreement
    plan = replace(agreement.plan, training=replace(agreement.plan.training, rounds=9))
    longer = replace(view.public, agreement=replace(agreement, plan=plan))
    with pytest.raises(NotTestable, match="before the last round"):
        attack_called("membership_transcript").attack(replace(view, public=longer), effort)


PLAN = """
name  = "tried"
title = "A plan of a test"

[[trial]]
attack       = "membership"
threat_model = "model_reader"
adversary    = "model reader"
claim        = "the total is differentially private"
profiles     = ["open"]
expect_fail  = "open"
measure      = "members ranked above others (likelihood ratio)"
refuted_from = 0.5
confidence   = 0.95
effort       = { rounds = 1, shadows = 8 }

[trial.run]
"corpus.source"           = "DOCUMENTS"
"corpus.party"            = "party"
"corpus.partition"        = "column"
"model.name"              = "lda"
"model.n_topics"          = 4
"model.sweeps"            = 2
"training.rounds"         = 4
"training.held_out"       = 0.5
"vocabulary.source"       = "file"
"vocabulary.min_documents" = 1
"vocabulary.max_share"    = 1.0
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    rows = [{"text": text, "party": name} for seed, name in enumerate(PARTIES) for text in texts(180, seed, words=900)]
    documents, path = tmp_path / "documents.jsonl", tmp_path / "tried.toml"
    documents.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    path.write_text(PLAN.replace("DOCUMENTS", str(documents)), "utf-8")
    return path


@pytest.mark.slow
def test_the_audit_holds_a_run_against_what_its_epsilon_allows(plan: Path, made: Made) -> None:
    """Without protection it is refuted; the run of epsilon 1 is judged by what that allows, and holds."""
    folder = made("dp-central", "lda", 2, privacy={"epsilon": 1.0})
    open_, dp = audit(plan, folder.path).findings
    assert (open_.outcome.verdict, open_.attempt.baseline, open_.attempt.refuted_from) == (REFUTED, True, 0.5)
    assert (dp.outcome.verdict, dp.about.claimed, dp.attempt.refuted_from) == (
        NOT_REFUTED,
        True,
        pytest.approx(0.731, abs=0.01),
    )
    _drawn(open_)


def _drawn(finding: Finding) -> None:
    assert [drawn.kind for drawn in finding.outcome.curves] == ["roc"] * 3
    assert finding.outcome.measured.by_chance == pytest.approx(0.5, abs=0.1)
