"""What comes of a training: the model lands at every party, one call loads it, and what may leave is a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from scipy import sparse

import securetm
from securetm.corpus.corpus import Corpus
from securetm.errors import Failed
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import execute
from securetm.federation.wire import wire
from securetm.models import MODELS
from securetm.models.given_documents import NoKnownWords
from securetm.models.lda.lda import LDA
from securetm.models.stored_model import write_model
from securetm.models.tensor_file import packed
from securetm.runs.adapted import adapted_to, write_adapted
from securetm.runs.finished import FinishedRun, load, model_of
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import small_plan
from .private import private_plan, public_words
from .staged import WORDS, Stage


def test_every_party_holds_the_finished_model(run: RunFolder, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = private_plan(tmp_path, "bfv", model={"name": "lda", "n_topics": 3}, training__rounds=2)
    unseen = begin(tmp_path / "run", plan, five)  # by the coordinator
    execute(unseen, Unwatched(), comparison=False)
    for folder in (run, unseen):
        whole = folder.model.read_bytes()
        for name in folder.members:
            assert (folder.party(name) / "release/model.safetensors").read_bytes() == whole
            assert (folder.party(name) / "vocabulary.txt").read_bytes() == folder.words.read_bytes()


@pytest.mark.slow
def test_a_noised_model_is_read_again_at_every_party(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = private_plan(tmp_path, "dp-central", model={"name": "lda", "n_topics": 3}, training__rounds=2)
    folder = begin(tmp_path / "run", plan, five)
    execute(folder, Unwatched(), comparison=False)
    whole = load(folder.model)
    assert "noise" in whole.state
    for name in folder.members:
        assert np.array_equal(load(folder.party(name) / "release/model.safetensors").components_, whole.components_)


def finished(stage: Stage) -> dict[str, np.ndarray]:
    model = stage.played.questions.agreement.model
    return dict(model.start(WORDS, np.random.default_rng(0)))


def test_a_state_that_is_no_model_is_refused_and_nothing_is_written(stage: Stage) -> None:
    state = finished(stage)
    for wrong in (
        {},
        {**state, "more": np.zeros(1)},
        {**state, "weights": state["weights"][:-1]},
        {**state, "weights": np.full_like(state["weights"], np.nan)},
    ):
        assert stage.says(wire.Finish(wrong, 3)) == wire.Refusal("BadState")
    assert not (stage.party.store.folder / "release/model.safetensors").exists()
    assert stage.party.finished is None
    assert stage.says(wire.Finish(state, 3)) == wire.Accepted()
    assert stage.party.finished == 3


def test_a_state_beyond_the_bound_is_not_read(stage: Stage) -> None:
    bound = stage.party.limits.of_bodies()["finish"]
    assert stage.says(wire.Finish({"weights": np.zeros(bound, dtype=np.uint8)}, 1)) == wire.Refusal("Malformed")


@pytest.fixture(scope="module")
def run(five: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    here = tmp_path_factory.mktemp("released")
    folder = begin(here / "run", private_plan(here, "masked", model={"name": "lda", "n_topics": 3}, training__rounds=2), five)
    execute(folder, Unwatched(), comparison=False)
    return folder


def test_the_model_and_its_topics_may_leave_and_lie_nowhere_else(run: RunFolder) -> None:
    assert {path.name for path in (run.path / "release").iterdir()} == {"model.safetensors", "topics.csv"}
    models = {path.parent.name for path in run.path.rglob("model.safetensors")}
    assert models == {"release"}, "a model lies beside files that must stay"


def test_the_topics_in_it_are_the_models(run: RunFolder) -> None:
    head, *lines = (run.path / "release" / "topics.csv").read_text("utf-8").splitlines()
    assert head == "topic,rank,word,weight"
    words = [line.split(",")[2] for line in lines if line.startswith("1,")]
    assert words[:10] == load(run.path).topics(10)[1]


def test_what_was_released_is_read_without_the_run(run: RunFolder, tmp_path: Path) -> None:
    whole = load(run.path)
    (tmp_path / "received").mkdir()
    (tmp_path / "received" / "model.safetensors").write_bytes((run.path / "release" / "model.safetensors").read_bytes())
    assert np.array_equal(load(tmp_path / "received").components_, whole.components_)


def test_an_adapted_model_may_not_leave(run: RunFolder, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    finished = FinishedRun.open(run.path)
    adapted, figures = adapted_to(finished, next(iter(five.values())), None, Unwatched())
    write_adapted(tmp_path / "adapted", finished, adapted, figures)
    assert not (tmp_path / "adapted" / "release").exists()
    assert model_of(tmp_path / "adapted") == tmp_path / "adapted" / "model.safetensors"
    assert load(tmp_path / "adapted").components_.shape[1] == len(finished.vocabulary)


# ---- one call loads any model ----------------------------------------------------------------------------------------------


MODELS_NAMED = {place.partition(":")[2]: name for name, place in MODELS.own.items()}
NEURAL = {"hidden": 8, "batch": 16}
SMALL: Mapping[str, Mapping[str, Any]] = {
    "combined-tm": NEURAL,
    "fednmf": {"local_epochs": 1},
    "lda": {"sweeps": 1},
    "lda-matched": {"sweeps": 2},
    "lda-vi": {"passes": 5},
    "moments": {"passes": 5},
    "neural-lda": NEURAL,
    "nmf": {"passes": 5},
    "prodlda": NEURAL,
    "sentence-lda": {"sweeps": 1},
    "sentence-lda-matched": {"sweeps": 2},
    "zeroshot-tm": NEURAL,
}


def embedded(corpora: Mapping[str, Corpus]) -> dict[str, Corpus]:
    """The same documents with embeddings, which most models leave alone."""
    draw = np.random.default_rng(0)
    return {name: each.replace(embeddings=draw.normal(size=(len(each), 384)).astype("f4")) for name, each in corpora.items()}


@pytest.fixture(scope="module", params=quick([*sorted(SMALL), "lda under bfv"], "lda-matched", "zeroshot-tm", "lda under bfv"))
def each_run(request: pytest.FixtureRequest, five: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of every kind of model; under bfv it is the parties that end with the model."""
    name, _, profile = request.param.partition(" under ")
    settings = {"name": name, "n_topics": 3, **SMALL[name]}
    path = tmp_path_factory.mktemp("runs")
    public = (
        {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": public_words(path)}
        if profile
        else {}
    )
    plan = small_plan(profile=profile or "open", model=settings, training__rounds=2, **public)
    execute(begin(path / "run", plan, embedded(five)), Unwatched(), comparison=False)
    return path / "run"


def test_a_run_and_its_model_file_are_the_same_model(each_run: Path, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    finished, by_run, corpora = FinishedRun.open(each_run), securetm.load(each_run), embedded(corpora)
    file = next(path for path in each_run.rglob("model.safetensors"))
    by_file = securetm.load(str(file))
    documents = corpora["north"].project(finished.vocabulary)
    expected = finished.model.infer(finished.state, documents)
    for loaded in (by_run, by_file):
        assert loaded.vocabulary == finished.vocabulary
        assert loaded.topics(4) == finished.topics(4)
        np.testing.assert_array_equal(loaded.transform(documents), expected)
        np.testing.assert_array_equal(loaded.transform(corpora["north"]), expected)  # over other words
        np.testing.assert_allclose(loaded.components_.sum(axis=1), 1)
        assert len(loaded.components_) == len(loaded.topics()) == expected.shape[1]
        assert loaded.model.name == MODELS_NAMED[type(loaded.model).__name__]
    by_file.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == file.read_bytes()


def small(folder: Path) -> Path:
    """A model file of two topics over three words."""
    model, words = LDA(n_topics=2), ("boat", "lake", "river")
    state = dict(model.start(words, np.random.default_rng(0)))
    state["counts"] = np.array([[3.0, 0, 1], [0, 5, 0]])
    write_model(folder / "model.safetensors", model, state, words)
    return folder / "model.safetensors"


def rewritten(path: Path, **facts: str) -> Path:
    with safe_open(path, framework="numpy") as stored:
        arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        said = {name: value for name, value in stored.metadata().items() if name != "sha256"}
    path.write_bytes(packed(arrays, {**said, **facts}))
    return path


@pytest.mark.parametrize(
    ("facts", "kind", "says"),
    [
        ({"model": "surprise"}, Failed, "surprise"),
        ({"version": "2"}, Failed, "version 2"),
        ({"kind": "something else"}, Failed, "no model of securetm"),
        ({"settings": "{"}, Failed, "settings"),
        ({"settings": "[" * 100_000}, Failed, "settings"),
        ({"vocabulary": '{"a":' * 100_000}, Failed, "settings or its vocabulary"),
        ({"settings": '{"n_topics": 1e308}'}, Failed, "settings"),
        ({"model": "lda-matched", "settings": '{"topics_at": 1}'}, Failed, "settings"),
        ({"vocabulary": json.dumps(["boat", "lake"])}, Failed, "arrays"),
        ({"vocabulary": json.dumps(["boat", "lake", "lake"])}, Failed, "twice"),
    ],
)
def test_a_file_that_holds_no_such_model_is_refused_by_name(
    facts: dict[str, str], kind: type[Exception], says: str, tmp_path: Path
) -> None:
    path = rewritten(small(tmp_path), **facts)
    with pytest.raises(kind, match=says) as refusal:
        securetm.load(path)
    assert str(path) in str(refusal.value)


def test_a_damaged_file_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    path = small(tmp_path)
    whole = path.read_bytes()
    for content in (b"", whole[:7], whole[: len(whole) // 2], whole[:-1], b"{" * 64):
        path.write_bytes(content)
        with pytest.raises(Failed):
            securetm.load(path)


@pytest.mark.parametrize("by", ["load", "fit"])
def test_a_document_without_a_known_word_is_pointed_out(by: str, tmp_path: Path) -> None:
    counts = sparse.csr_array(np.array([[4.0, 0, 0], [0, 0, 0], [0, 9, 0], [0, 0, 0]]))
    model = securetm.load(small(tmp_path)) if by == "load" else LDA(n_topics=2).fit(counts, epochs=1)
    with pytest.warns(NoKnownWords, match="2 of 4 documents have no word"):
        shares = model.transform(counts)
    assert shares.shape == (4, 2)  # as before: every document has a row that sums to one
    np.testing.assert_array_equal(model.known_words(counts), [4, 0, 9, 0])
