"""What a model remembers gives members away on real runs, noise keeps them, and the arithmetic holds by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import beta, binom, norm

from securetm.auditing.attack import Estimate, GroundTruth, Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import measured, of_chance
from securetm.auditing.parts.membership_game import (
    BOTH,
    INSIDE,
    MEMBER,
    OUTSIDE,
    ShadowScores,
    allowed,
    allowed_false_positives,
    area_under_curve,
    best_fits,
    found,
    judged,
    measures,
    ordered,
    pose,
    presence,
    shadows_of,
    training,
    true_positives_at,
)
from securetm.auditing.recorded import public_facts, questions_of, view_of
from securetm.auditing.verdicts import clopper_pearson
from securetm.auditing.views import AdversaryView, NotTestable
from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.mechanisms.clipping import at_most
from securetm.plans.profiles import read_profile

from ..quick_part import quick
from .conftest import PARTIES, adversary, made_run, plan_tables, public_list, texts

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
    chosen = {"name": model, "n_topics": 4, **({"sweeps": 2} if model == "lda" else {})}
    tables = plan_tables(profile, chosen, rounds, public_list(parties, path.parent), held_out=0.5)
    return made_run(path, parties, {**tables, **sections})


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


@pytest.mark.parametrize("model", quick(["lda", "lda-vi"], "lda"))
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


def test_noise_inside_documents_is_not_simulated(made: Made) -> None:
    facts = public_facts(made("open", "lda"))
    public = replace(facts, agreement=replace(facts.agreement, profile=read_profile("iftm")))
    candidates = pose(ground_truth_of(made("open", "lda"), []), {}, np.random.default_rng(0)).question
    with pytest.raises(NotTestable, match="iftm"):
        shadows_of(candidates, ("a", "b"), public, 4, lambda *_: np.zeros(0))


def test_a_run_that_ended_early_is_no_match_for_its_shadows(made: Made) -> None:
    effort = {"rounds": 2, "shadows": 3}
    view, _ = _put(made("open", "lda"), "membership_transcript", COORDINATOR, effort)
    agreement = view.public.agreement
    plan = replace(agreement.plan, training=replace(agreement.plan.training, rounds=9))
    longer = replace(view.public, agreement=replace(agreement, plan=plan))
    with pytest.raises(NotTestable, match="before the last round"):
        attack_called("membership_transcript").attack(replace(view, setting=longer), effort)


# ---- arithmetic: likelihood ratios, curves with ties, thresholds, what an epsilon allows -----------------------------


def test_members_are_ranked_as_well_as_theory_allows() -> None:
    """With means one deviation apart, a member scores above another with probability Phi(1 / sqrt 2)."""
    rng = np.random.default_rng(2)
    inside = rng.random((60, 5000)) < 0.5
    member = rng.random(5000) < 0.5
    level = rng.normal(0, 10, 5000)  # each document has a level of its own, which the bare score is lost in
    of_shadows = rng.standard_normal(inside.shape) + inside + level
    scores = rng.standard_normal(5000) + member + level
    ratios = ShadowScores(of_shadows, inside).log_ratios(scores)
    assert area_under_curve(ratios[member], ratios[~member]) == pytest.approx(norm.cdf(1 / np.sqrt(2)), abs=0.02)
    assert area_under_curve(scores[member], scores[~member]) < 0.56


def test_a_threshold_surely_lets_no_more_through() -> None:
    for others, share, confidence in ((8000, 0.001, 0.95), (8000, 0.001, 0.999), (400, 0.01, 0.95)):
        most = allowed_false_positives(others, share, confidence)
        assert beta.sf(share, most + 1, others - most) <= 1 - confidence
        assert beta.sf(share, most + 2, others - most - 1) > 1 - confidence
    assert allowed_false_positives(200, 0.01, 0.95) == -1
    assert allowed_false_positives(0, 0.01, 0.95) == -1


@pytest.mark.parametrize("confidence", [0.5, 0.8])
def test_threshold_and_interval_together_are_wrong_as_rarely_as_one_of_them(confidence: float) -> None:
    """Members drawn like others: above a threshold that lets 20 % through lie 20 % of them, and not surely more."""
    rng, wrong, tries = np.random.default_rng(9), 0, 2000
    for _ in range(tries):
        told = true_positives_at(rng.random(200), rng.random(40), 0.2, confidence)
        wrong += measured("m", MEMBER, told, confidence).low > 0.2
    assert wrong <= binom.ppf(0.9999, tries, 1 - confidence)
    both = true_positives_at(np.ones(400), np.zeros(400), 0.01, 0.95)
    assert measured("m", MEMBER, both, 0.95).low == pytest.approx(clopper_pearson(400, 400, 0.975)[0])


def test_what_an_epsilon_allows() -> None:
    one = Budget(Unit.DOCUMENT, 1.0, 1e-5)
    assert allowed(found(0.001, "any"), one) == pytest.approx(np.e * 0.001 + 1e-5)
    assert allowed(found(0.01, "any"), one) == pytest.approx(np.e * 0.01 + 1e-5)
    assert allowed(found(0.01, "any"), Budget(Unit.PERSON, 0.0, 0.0)) == pytest.approx(0.01)
    assert allowed(ordered("any"), Budget(Unit.DOCUMENT, 0.0, 0.0)) == 0.5
    assert allowed(found(0.01, "any"), Budget(Unit.DOCUMENT, 8.0, 1e-5)) == pytest.approx(1 - (1 - 1e-5 - 0.01) / np.exp(8))
    for claimed in (one, Budget(Unit.PARTY, 3.0, 0.1)):
        grown, false = np.exp(claimed.epsilon), np.linspace(0, 1, 200_001)
        most = np.minimum(np.minimum(grown * false + claimed.delta, 1 - (1 - claimed.delta - false) / grown), 1)
        assert allowed(ordered("any"), claimed) == pytest.approx(np.trapezoid(most, false), abs=1e-5)
    assert allowed(found(0.001, "any"), Budget(Unit.DOCUMENT, 900.0, 0.0)) == pytest.approx(1.0)


@pytest.mark.parametrize("measure", list(measures("any")))
def test_a_claim_about_words_is_refuted_by_no_membership(measure: str) -> None:
    assert allowed(measure, Budget(Unit.WORD, 0.1, 0.0)) == 1.0


def test_the_question_is_shuffled_and_has_no_answer_in_it() -> None:
    rng = np.random.default_rng(5)
    counts = np.eye(40, dtype=np.int64)[:, :40] + rng.integers(0, 3, (40, 40))
    held, others = sparse.csr_array(counts[:22]), sparse.csr_array(counts[20:])  # two documents are on both sides
    held = sparse.csr_array(sparse.vstack([held, held[:3]]))  # and three are there twice
    truth = GroundTruth(
        tuple(map(str, range(40))), {"a": held[:10], "b": held[10:]}, {}, others={"a": others[:4], "b": others[4:]}
    )
    posed = pose(truth, {}, np.random.default_rng(0))
    assert isinstance(posed.question, sparse.csr_array)
    assert posed.question.shape[0] == 40
    row = [int(np.flatnonzero((counts == document).all(axis=1))[0]) for document in posed.question.todense()]
    assert sorted(row) == list(range(40))
    assert posed.answer.tolist() == [INSIDE if at < 20 else BOTH if at < 22 else OUTSIDE for at in row]
    assert row != sorted(row)
    assert 2 < int((posed.answer[:20] == INSIDE).sum()) < 18  # neither side comes first
    other = pose(truth, {}, np.random.default_rng(1))
    assert other.answer.tolist() != posed.answer.tolist()


def test_what_helpers_hold_is_no_question() -> None:
    table = sparse.csr_array(np.eye(6, dtype=np.int64))
    truth = GroundTruth(
        tuple("abcdef"), {"a": table[:2], "b": table[2:4]}, {}, others={"a": table[4:5], "b": table[5:]}, helpers=("b",)
    )
    posed = pose(truth, {}, np.random.default_rng(0))
    assert sorted(np.asarray(posed.question.todense()).argmax(axis=1)) == [0, 1, 4]


def test_documents_on_both_sides_count_for_nobody() -> None:
    answer = np.array([INSIDE] * 400 + [OUTSIDE] * 400 + [BOTH] * 100, dtype=np.int8)
    scores = np.concatenate([np.ones(400), np.zeros(400), np.full(100, 9.0)])
    worth = judged({"any": scores}, GroundTruth((), {}, {}, answer=answer))
    assert worth.measures[found(0.01, "any")] == Proportion(400, 400, 0.5)
    assert worth.measures[found(0.001, "any")] == Proportion(0, 0)
    assert [drawn.label for drawn in worth.curves] == ["any", "chance"]
    assert all(drawn.kind == "roc" for drawn in worth.curves)


def test_the_best_shares_of_topics_are_found() -> None:
    """A document half of one topic's only word and half of another's: at best each word has probability one half."""
    topics = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    documents = sparse.csr_array(np.array([[3, 3, 0], [4, 0, 0], [1, 3, 0]]))
    best = [6 * np.log(0.5), 0.0, np.log(0.25) + 3 * np.log(0.75)]
    assert best_fits(documents, topics) == pytest.approx(best, abs=0.01)
    assert best_fits(sparse.csr_array(np.array([[0, 0, 1]])), topics)[0] < -60  # a word that no topic has


def test_word_counts_name_the_documents_behind_them() -> None:
    rng = np.random.default_rng(6)
    counts = sparse.csr_array(rng.poisson(0.05, (100, 400)))
    member = rng.random(100) < 0.5
    totals = np.asarray(counts[np.flatnonzero(member)].sum(axis=0), dtype=np.float64)
    clear = presence(counts, totals, 0.5)
    assert clear[member].min() > clear[~member].max()
    noised = presence(counts, totals + rng.normal(0, 50, 400), 0.5, deviation=50.0)
    assert np.abs(noised).max() < 0.1  # what noise drowns is not believed
    assert 0.3 < area_under_curve(noised[member], noised[~member]) < 0.7


def test_bounded_rows_are_counted_as_bounded() -> None:
    """Documents of which at most 12 words count, each once, and nobody can say which: that much is reckoned with."""
    known, unknown = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        counts = sparse.csr_array(rng.poisson(0.1, (100, 400)) * rng.integers(1, 5, (100, 400)))
        totals, member = at_most(counts, 12, 1).toarray(), rng.random(100) < 0.5
        for ranked, bounds in ((known, {"most": 12, "each": 1}), (unknown, {})):
            scores = presence(counts, totals[member].sum(axis=0), 0.5, **bounds)
            ranked.append(area_under_curve(scores[member], scores[~member]))
    assert np.mean(known) > 0.9  # 0.88 where words are taken to be there in parts
    assert np.mean(known) > np.mean(unknown) + 0.03
