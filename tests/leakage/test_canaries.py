"""Made documents: a fair coin decides and only the judge knows who is in; what guesses show of a run, and what they cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, Unwatched
from securetm.leakage.attack import Bounded, Judged, Posed, Truth
from securetm.leakage.attacks import one_run_epsilon
from securetm.leakage.attacks.one_run_epsilon import ATTACK, SHOWN
from securetm.leakage.canaries import LENGTH, RECORD, record_of, with_canaries
from securetm.leakage.controls import of_chance
from securetm.leakage.demonstration import Demonstrations
from securetm.leakage.findings import judged_alone, measured
from securetm.leakage.recorded import questions_of, view_of
from securetm.leakage.truth import truth_of
from securetm.leakage.views import View
from securetm.mechanisms.gaussian_noise import GaussianNoise
from securetm.mechanisms.samplers import rounded_gaussian

from .conftest import PARTIES, adversary

EACH = 40
AT = 0.999


def _listed(parties: Mapping[str, Corpus]) -> tuple[str, ...]:
    return Corpus.concat(list(parties.values())).vocabulary


# ---- how they are made ----------------------------------------------------------------------------------------------


def test_about_half_are_put_in_and_the_record_says_which(parties: Mapping[str, Corpus]) -> None:
    put, record = with_canaries(parties, 200, 1)
    inside = np.isin(record.keys, np.concatenate([corpus.keys for corpus in put.values()]))
    assert record.labels is not None
    np.testing.assert_array_equal(inside, record.labels == "in")
    assert 400 < inside.sum() < 600
    for name, corpus in put.items():
        mine = record.select(np.flatnonzero((record.parties == name) & inside))
        assert len(corpus) == len(parties[name]) + len(mine)
        assert set(mine.keys) <= set(corpus.keys)


def test_coins_are_those_of_the_seed_and_are_nobody_else_s(parties: Mapping[str, Corpus]) -> None:
    first, again, other = (with_canaries(parties, 100, seed)[1].labels for seed in (1, 1, 2))
    assert first is not None
    assert again is not None
    assert other is not None
    np.testing.assert_array_equal(first, again)
    assert 150 < (first == other).sum() < 350


def test_they_are_made_of_the_parties_own_rarer_words(parties: Mapping[str, Corpus]) -> None:
    listed = _listed(parties)
    _, record = with_canaries(parties, 50, 1, listed)
    lengths = record.lengths()
    assert set(record.vocabulary) <= set(listed)
    assert (lengths == min(LENGTH, len(record.vocabulary))).all()
    assert record.counts.data.max() == 1  # no word twice: what is bounded is the number of words
    often = Corpus.concat(list(parties.values())).project(record.vocabulary).document_frequencies()
    everywhere = Corpus.concat(list(parties.values())).document_frequencies()
    assert often.max() <= np.median(everywhere[everywhere >= 5])


def test_a_party_s_documents_carry_no_mark(parties: Mapping[str, Corpus]) -> None:
    labelled = {name: replace(corpus, labels=np.full(len(corpus), "a subject")) for name, corpus in parties.items()}
    put, _ = with_canaries(labelled, 30, 1)
    for corpus in put.values():
        assert corpus.labels is not None
        assert set(corpus.labels) == {"a subject", ""}
        assert corpus.parties is None


# ---- in a run -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def plain(documents_file: Path, parties: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Settings of runs over the same few documents, whose words are public."""
    words = tmp_path_factory.mktemp("words") / "words.txt"
    often = Corpus.concat(list(parties.values()))
    words.write_text("\n".join(word for word, n in zip(often.vocabulary, often.document_frequencies(), strict=True) if n >= 5))
    return {
        "corpus.source": str(documents_file),
        "corpus.party": "party",
        "corpus.partition": "column",
        "model.name": "lda",
        "model.n_topics": 5,
        "training.rounds": 2,
        "training.held_out": 0.01,
        "vocabulary.source": "file",
        "vocabulary.file": str(words),
    }


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


def _played(folder: RunFolder, who: tuple[str, str] = ("coordinator", "private_answers")) -> tuple[View, Truth, Posed]:
    """Eyes, truth and question, as the frame puts them together."""
    view = view_of(folder, adversary(*who), ATTACK, 2)
    truth = replace(truth_of(folder, questions_of(folder, ATTACK.questions, 2).values()), confidence=AT)
    posed = one_run_epsilon.pose(truth, {"rounds": 2}, np.random.default_rng(0))
    return replace(view, question=posed.question), replace(truth, answer=posed.answer), posed


def _judged(view: View, truth: Truth) -> Bounded:
    found = _whole(view, truth).measures[SHOWN]
    assert isinstance(found, Bounded)
    return found


def _whole(view: View, truth: Truth) -> Judged:
    return one_run_epsilon.judge(one_run_epsilon.attack(view, {"rounds": 2}), truth)


def _within(thing: Any, depth: int = 0) -> list[Any]:
    """Everything that can be reached from an attack's view by its fields."""
    if isinstance(thing, Mapping):
        return [part for value in thing.values() for part in _within(value, depth + 1)]
    if isinstance(thing, list | tuple):
        return [part for value in thing for part in _within(value, depth + 1)]
    if is_dataclass(thing) and not isinstance(thing, type) and depth < 9:
        return [thing, *(part for f in fields(thing) for part in _within(getattr(thing, f.name), depth + 1))]
    return [thing]


def test_no_attack_sees_who_is_in(runs: Demonstrations, plain: Mapping[str, Any]) -> None:
    folder = runs.run("open", plain, canaries=EACH)
    view, truth, posed = _played(folder)
    coins = np.asarray(posed.answer)
    assert len(coins) == EACH * len(PARTIES)
    reached = _within(view)
    same = [a for a in reached if isinstance(a, np.ndarray) and a.shape == coins.shape and np.isin(a, (0, 1)).all()]
    assert same == []
    assert "in" not in [text for a in reached if isinstance(a, np.ndarray) and a.dtype.kind == "U" for text in a]
    keys = set(view.question.documents.keys)
    for others in view.question.others.values():  # what the parties held beside: no canary among them
        assert not keys & set(others.keys)
    assert truth.canaries is not None
    assert (folder.path / RECORD).is_file()


def test_a_run_without_canaries_has_none(runs: Demonstrations, plain: Mapping[str, Any]) -> None:
    folder = runs.run("open", plain)
    assert record_of(folder.path, ("word",)) is None
    assert truth_of(folder, ()).canaries is None
    assert folder.path != runs.run("open", plain, canaries=EACH).path


def test_where_nothing_protects_nearly_all_are_found(runs: Demonstrations, plain: Mapping[str, Any]) -> None:
    view, truth, _ = _played(runs.run("open", plain, canaries=EACH))
    found, chance = _judged(view, truth), _judged(of_chance(view, 1), truth)
    assert found.low > 1.5
    assert found.low > chance.high
    assert chance.low < 0.2


@pytest.mark.parametrize(
    ("profile", "who"),
    [
        ("dp-local", ("coordinator", "private_answers")),
        ("dp-distributed", ("coordinator", "private_answers")),
        ("dp-central", ("party", "model_reader")),
    ],
)
def test_noised_runs_show_less_than_an_ideal_attacker_would_see(
    runs: Demonstrations, plain: Mapping[str, Any], profile: str, who: tuple[str, str]
) -> None:
    view, truth, _ = _played(runs.run(profile, plain, canaries=EACH), who)
    whole = _whole(view, truth)
    found = whole.measures[SHOWN]
    assert isinstance(found, Bounded)
    assert truth.claimed is not None
    assert found.low < found.ceiling + 1.0 < truth.claimed.epsilon
    ideal, shown = whole.curves
    assert shown.across == (truth.claimed.epsilon,)
    assert shown.up == (found.low,)
    assert list(ideal.up) == sorted(ideal.up)
    assert max(ideal.up) < max(ideal.across) / 2


def _verdict(found: Bounded, epsilon: float) -> tuple[str, str]:
    whole = measured(SHOWN, "epsilon", found, AT)
    return judged_alone(whole, measured(SHOWN, "epsilon", Bounded(0.0, 0.0, 0.1, found.ceiling), AT), epsilon)


def test_half_the_noise_is_not_seen_and_that_is_said(
    runs: Demonstrations, plain: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GaussianNoise, "_noise", lambda self, terms: rounded_gaussian(self.noise_multiplier * terms.l2 / 2))
    folder = runs.run("dp-local", {**plain, "seed": 7}, canaries=EACH)
    view, truth, _ = _played(folder)
    assert truth.claimed is not None
    assert truth.claimed.epsilon == pytest.approx(6.607, abs=0.01)  # what honest noise would spend
    verdict, why = _verdict(_judged(view, truth), truth.claimed.epsilon)
    assert verdict == "not tested"
    assert "even an ideal attacker's interval" in why
    assert any("half of what it should be" in limit for limit in ATTACK.limits)


def test_a_run_that_shows_more_than_it_claims_is_refuted_whatever_the_ceiling(
    runs: Demonstrations, plain: Mapping[str, Any]
) -> None:
    """No noise at all behind a claim of 1: the bound itself then lies above the claim, and above any ideal attacker's."""
    view, truth, _ = _played(runs.run("open", plain, canaries=EACH))
    claimed = replace(_played(runs.run("dp-local", plain, canaries=EACH))[1].claimed, epsilon=1.0)  # type: ignore[type-var]
    found = _judged(view, replace(truth, claimed=claimed))
    assert _verdict(found, 1.0)[0] == "refuted"
