"""What a run returns: the result and its frames, whether the model is of use, and what adapting it gives each party."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import securetm
from securetm import federate
from securetm.cli.models import told_apart
from securetm.contracts import Memory
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin, result_of
from securetm.federation.party.alone import STAGES, Adapted, adapt, rounds_of_adapting, trained_on
from securetm.federation.simulation import comparison
from securetm.federation.simulation.comparison import weighed
from securetm.federation.simulation.simulation import execute
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.lda.matched import MatchedLDA
from securetm.models.neural.prodlda import ProdLDA
from securetm.reports.runs import of_use, quality
from securetm.runs import adapted as adapted_models
from securetm.runs.finished import FederationResult, FinishedRun, NoFigures, SeveralRuns
from securetm.stages import Unwatched

from .conftest import FIVE, small_plan, texts

SETTINGS = {"profile": "open", "model.n_topics": 3, "training.rounds": 5, "vocabulary.min_documents": 2}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> FederationResult:
    parties = {name: securetm.Corpus.from_strings(texts(FIVE[name], 40, n), name=name) for n, name in enumerate(FIVE)}
    small = {"vocabulary.most_candidates": 500, "vocabulary.max_share": 1.0}
    return securetm.federate(parties, tmp_path_factory.mktemp("result") / "run", {**SETTINGS, **small})


def test_it_is_the_table_that_the_command_prints(result: FederationResult) -> None:
    assert result == result_of(Path(result["directory"]))
    assert json.loads(json.dumps(result))["topics"] == result["topics"]
    assert result.quality == result["quality"]


def test_a_folder_of_runs_is_none_itself(result: FederationResult) -> None:
    run = Path(result["directory"])
    with pytest.raises(SeveralRuns, match=r"it is a folder of runs, such as .*/run$") as told:
        securetm.load(run.parent)
    assert told.value.first == str(run)


def test_an_adapted_model_has_no_figures_of_parties(result: FederationResult, tmp_path: Path) -> None:
    run, documents = result.model, Corpus.from_strings(texts(next(iter(FIVE.values())), 40, 0))
    adapted_models.write_adapted(tmp_path / "own", run, *adapted_models.adapted_to(run, documents, 0, Unwatched()))
    with pytest.raises(NoFigures, match="it was adapted to the documents of one party"):
        securetm.load(tmp_path / "own").quality_frame()


def test_frames_hold_the_same_figures(result: FederationResult) -> None:
    frame = result.topics_frame(5)
    assert list(frame.columns) == ["topic", "rank", "word", "weight"]
    assert frame[frame["topic"] == 1]["word"].tolist() == result["topics"][1][:5]
    assert frame["weight"].between(0, 1).all()
    prevalence = result.prevalence_frame()
    assert list(prevalence.index) == result["parties"]
    np.testing.assert_allclose(prevalence.sum(axis=1), 1, atol=1e-3)
    assert result.documents_frame()["all"].to_dict() == dict.fromkeys(FIVE, 40)
    quality = result.quality_frame()
    assert len(quality) == 1 + 3 * len(FIVE)
    assert quality["npmi"][0] == result["quality"]["npmi"]
    assert list(result.spent_frame().index) == result["parties"]


def test_the_model_is_at_hand_and_reads_texts(result: FederationResult) -> None:
    shares = result.model.transform([*texts(FIVE["north"], 2, 9)])
    assert shares.shape == (2, 3)


# ---- whether the model is of use -------------------------------------------------------------------------------------------


WORDS = {"vocabulary.min_documents": 2, "vocabulary.max_share": 1.0, "vocabulary.most_candidates": 500}
SMALL = {"profile": "open", "model.name": "lda", "model.n_topics": 3, **WORDS}


@pytest.fixture(scope="module")
def compared(corpora: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    settings = {**SMALL, "training.rounds": 20, "training.held_out": 0.2}
    return federate(corpora, tmp_path_factory.mktemp("compared") / "run", settings)


def test_a_model_that_learned_is_of_use(compared: Mapping[str, Any]) -> None:
    result = compared
    told = result["baseline"]
    assert result["useful"] is True
    assert result["quality"]["held_out"] == pytest.approx(told["model"], rel=1e-6)
    assert told["model"] < told["word_frequencies"] < told["uniform"] == 40
    assert 0 < told["gain"]["low"] < told["gain"]["value"] < told["gain"]["high"]
    assert told["worse_than_uniform"] is False


def test_a_model_that_predicts_worse_is_of_no_use(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Steps that are too long make a network sure of the wrong words."""
    plan = small_plan(model__learning_rate=3.0, training__rounds=12, training__held_out=0.4)
    result = execute(begin(tmp_path / "run", plan, corpora), Unwatched(), comparison=False)
    assert result["useful"] is False
    assert result["baseline"]["model"] > result["baseline"]["word_frequencies"]
    assert result["baseline"]["gain"]["high"] < 0


def test_what_too_few_documents_show_is_not_told(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    result = federate(corpora, tmp_path / "run", {**SMALL, "training.rounds": 1, "training.held_out": 0.02}, comparison=False)
    told = result["baseline"]
    assert told["documents"] < 10
    assert result["useful"] is None


# ---- the comparison with each party alone ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_run_is_compared_by_a_sample(
    corpora: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from securetm.federation.simulation import comparison

    monkeypatch.setattr(comparison, "MOST_TRAINED", 30)
    monkeypatch.setattr(comparison, "MOST_JUDGED", 24)
    trained: list[int] = []
    before = comparison.train_alone

    def counted(plan: Any, name: str, documents: Any, *rest: Any) -> Any:
        trained.append(len(documents))
        return before(plan, name, documents, *rest)

    monkeypatch.setattr(comparison, "train_alone", counted)
    results = [federate(corpora, tmp_path / name, {**SMALL, "training.rounds": 2, "training.held_out": 0.3}) for name in "ab"]
    assert trained == [30] * 6
    told = results[0]["comparison"]
    assert (told["sampled"], told["training_documents"], told["judged_documents"]) == (True, 30, 8)
    assert results[0]["alone"] == results[1]["alone"]  # the sample's seed is fixed
    assert results[0]["baseline"]["documents"] <= 24


def test_a_run_without_the_comparison_trains_nobody_alone(
    corpora: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from securetm.federation.simulation import comparison

    monkeypatch.setattr(comparison, "train_alone", lambda *_: pytest.fail("a party trained alone"))
    result = federate(corpora, tmp_path / "run", {**SMALL, "training.rounds": 3}, comparison=False)
    assert result["comparison"]["made"] is False
    assert result["alone"] == result["topics_alone"] == {}
    assert set(result["shared_at_party"]) == set(corpora)
    assert np.isfinite(result["quality"]["held_out"])


def test_perplexity_does_not_make_a_model_useful_that_read_the_whole_text(
    corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """The embedding of a held-out document was made of all its words, those that are to be predicted too."""
    rng = np.random.default_rng(3)
    held = {
        name: one.replace(embeddings=rng.standard_normal((len(one), 6)).astype(np.float32)) for name, one in corpora.items()
    }
    reading = {"model.name": "zeroshot-tm", "model.embedding_size": 6, "embeddings.model": ""}
    settings = {**SMALL, **reading, "training.rounds": 5, "training.held_out": 0.2}
    result = federate(held, tmp_path / "run", settings, comparison=False)
    assert result["useful"] is not True
    assert result["baseline"]["from_whole_texts"] is True
    assert result["useful"] is False or "made of all its words" in of_use(result)
    assert "made of all its words" in of_use({**result, "useful": None})


def test_a_verdict_weighs_diversity_and_documents_that_are_left_out(compared: Mapping[str, Any]) -> None:
    held = {"north": {"all": 100, "with_agreed_words": 90}, "south": {"all": 100, "with_agreed_words": 60}}
    assert weighed({"useful": True}, 0.3, held)["useful"] is True
    same = weighed({"useful": True}, 0.07, held)
    assert (same["useful"], same["weighed"]["why"]) == (False, ["same words"])
    left = weighed({"useful": True}, 0.3, {"north": {"all": 100, "with_agreed_words": 30}})
    assert (left["useful"], left["weighed"]["without_words"]) == (False, 70)
    assert weighed({"useful": None}, 0.07, held)["useful"] is None
    said = " ".join(of_use({**compared, **same}).split())
    assert "of no use" in said
    assert "Its topics say the same words (diversity 0.07)" in said
    assert "70 of 100 documents have no word" in " ".join(of_use({**compared, **left}).split())


# ---- adapting the shared model ---------------------------------------------------------------------------------------------


MODELS = (
    LDA(n_topics=2, sweeps=1),
    VariationalLDA(n_topics=2),
    ProdLDA(n_topics=2, hidden=8, batch=16),
    MatchedLDA(n_topics=2),
)


def nothing(done: int, of: int) -> None:
    """Shows no progress."""


@pytest.fixture(scope="module")
def shared() -> Mapping[str, Corpus]:
    """Two parties that talk of different things."""
    rng = np.random.default_rng(7)
    words = tuple(f"w{n:02}" for n in range(40))
    return {
        name: Corpus.from_counts(rng.multinomial(20, rng.dirichlet(np.full(20, 0.3)), 80) @ np.eye(20, 40, shift, int), words)
        for name, shift in (("low", 0), ("high", 20))
    }


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_adapting_never_predicts_own_documents_worse_than_not_adapting(model: Any, shared: Mapping[str, Corpus]) -> None:
    documents = shared["low"]
    start = model.start(documents.vocabulary, np.random.default_rng(0))
    state = model.shared(trained_on(model, start, shared["high"], range(4), 0, Memory(), nothing))
    steps: list[tuple[int, int]] = []
    adapted = adapt(model, state, documents, 4, 0, lambda *now: steps.append(now))
    assert adapted.stages == int(np.argmin(adapted.chosen_by)) > 0
    assert steps[-1][0] <= steps[-1][1] == rounds_of_adapting(4)
    assert len(adapted.chosen_by) == 1 + len(STAGES)
    assert adapted.model.fits(adapted.state, len(documents.vocabulary))
    again = adapt(model, state, documents, 4, 0, nothing)
    for name, array in adapted.state.items():
        np.testing.assert_array_equal(array, again.state[name])
    gained = adapted.facts()["own_topics"]
    assert gained == (2 if model.gains_topics else 0) or model.party_models


def test_few_documents_get_few_topics_of_their_own(shared: Mapping[str, Corpus]) -> None:
    model = next(one for one in MODELS if one.gains_topics)
    few = shared["low"].select(np.arange(19))
    state = model.shared(
        trained_on(model, model.start(few.vocabulary, np.random.default_rng(0)), few, range(4), 0, Memory(), nothing)
    )
    for asked, own in ((None, 1), (2, 2)):
        adapted = adapt(model, state, few, 4, 0, nothing, asked)
        assert adapted.stages > 0
        assert adapted.facts()["own_topics"] == own


def test_a_run_shows_what_adapting_gives(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    settings = {"profile": "open", "model.name": "lda", "model.n_topics": 3, "training.rounds": 3}
    result = federate(corpora, tmp_path / "run", settings)
    assert set(result["adapted_at_party"]) == set(corpora)
    for place, name in enumerate(result["parties"], start=1):
        told = result["adapted_at_party"][name]
        assert np.isfinite(told["held_out"])
        assert np.isfinite(told["held_out_everywhere"])
        assert (told["shared_topics"], told["stages"] > 0) == (3, told["own_topics"] > 0)
        (file,) = (tmp_path / "run/parties").glob(f"{place:02}-*/adapted.safetensors")
        assert len(securetm.load(file).topics()) == told["shared_topics"] + told["own_topics"]


def test_what_adapting_made_worse_is_said_and_not_kept(
    corpora: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worse(model: Any, shared: Any, documents: Any, *_: Any) -> Adapted:
        """What adapting comes to that chose random topics."""
        return Adapted(model, model.start(documents.vocabulary, np.random.default_rng(1)), 3, 1, (2.0, 1.0))

    monkeypatch.setattr(comparison, "adapt", worse)
    monkeypatch.setattr(adapted_models, "adapt", worse)
    result = federate(
        corpora, tmp_path / "run", {"profile": "open", "model.name": "lda", "model.n_topics": 3, "training.rounds": 9}
    )
    for name, told in result["adapted_at_party"].items():
        assert (told["stages"], told["held_out"]) == (0, result["shared_at_party"][name]["held_out"])
    assert "Adapting helped no party" in quality(result).caption
    run = FinishedRun.open(tmp_path / "run")
    adapted, figures = adapted_models.adapted_to(run, next(iter(corpora.values())), None, Unwatched())
    assert adapted.stages == 0
    np.testing.assert_array_equal(run.model.topics(adapted.state), run.components_)
    assert figures["held_out"]["not_kept"]["held_out"] > figures["held_out"]["shared"]["held_out"]


def test_two_perplexities_are_told_apart() -> None:
    assert told_apart(812.4, 700.2) == ("812", "700")
    assert told_apart(7.314, 7.281) == ("7.31", "7.28")
    assert told_apart(7.0, 7.0) == ("7", "7")
