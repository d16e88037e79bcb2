"""A model that reads embeddings: each party makes its own, none leaves it, and all must use the same sentence model."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.contracts import Array
from securetm.corpus.text_embeddings import USUAL_DIGEST, NoSentenceModel, SentenceModel
from securetm.errors import BadSetting, Mistake
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import execute
from securetm.federation.sources import corpora_of
from securetm.models.given_documents import UnfitDocuments
from securetm.plans.agreement import agree
from securetm.plans.reading import EmbeddingsWithoutNoise
from securetm.plans.schema import Plan
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched
from tests.corpus.tiny_sentence_model import tiny_model

from .conftest import FIVE, SHARED, small_plan, texts
from .joined import PLAN, Organisations, trained

WORDS = sorted({*SHARED, *(word for subject in FIVE.values() for word in subject)})


@pytest.fixture(scope="module")
def sentence_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", words=WORDS)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def written(folder: Path) -> Path:
    rows = [{"text": t, "party": name} for seed, (name, s) in enumerate(FIVE.items()) for t in texts(s, 25, seed)]
    (folder / "documents.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return folder / "documents.jsonl"


def plan_of(sentences: Path | str, name: str = "combined-tm", **more: Any) -> Plan:
    few = {"name": name, "n_topics": 3, "hidden": 8, "batch": 24}
    return small_plan(**{"model": few, "training__rounds": 3, "embeddings__model": str(sentences), **more})


def windows(embeddings: Array, numbers: int = 4) -> Iterator[bytes]:
    """Neighbouring numbers of each embedding as they would stand in a message, in every width and both orders of bytes."""
    for kind in ("<f2", "<f4", "<f8", ">f4", ">f8"):
        for row in embeddings.astype(kind):
            yield from (row[first : first + numbers].tobytes() for first in range(0, len(row) - numbers + 1, numbers))


@pytest.mark.parametrize("name", ["combined-tm"])
def test_no_embedding_stands_in_any_message(name: str, sentence_model: Path, tmp_path: Path) -> None:
    corpus = {"corpus__source": str(written(tmp_path)), "corpus__partition": "column"}
    plan = plan_of(sentence_model, name, profile="open", **corpus)
    corpora = corpora_of(plan, Unwatched())
    folder = begin(tmp_path / "run", plan, corpora, with_content=True)
    result = execute(folder, Unwatched(), comparison=False)
    assert result["rounds"] == 3
    with sqlite3.connect(folder.path / "transcript" / "messages.sqlite") as opened:
        messages = b"".join(bytes(row[0]) for row in opened.execute("SELECT content FROM messages"))
    opened.close()
    assert len(messages) > 10_000
    held = np.concatenate([one.embeddings for one in corpora.values() if one.embeddings is not None])
    assert held.shape == (125, 16)
    assert b"".join(windows(held[:1], 4)) not in messages
    assert not [one for one in windows(held) if one in messages]


@pytest.mark.slow
def test_new_documents_are_embedded_as_in_training(sentence_model: Path, tmp_path: Path) -> None:
    corpus = {"corpus__source": str(written(tmp_path)), "corpus__partition": "column"}
    plan = plan_of(sentence_model, "zeroshot-tm", **corpus)
    execute(begin(tmp_path / "run", plan, corpora_of(plan, Unwatched())), Unwatched(), comparison=False)
    run = FinishedRun.open(tmp_path / "run")
    assert run.plan.model.settings["embedding_size"] == 16
    assert run.plan.embeddings.digest == SentenceModel("", sentence_model).digest
    (tmp_path / "new.jsonl").write_text('{"text": "river water"}\n{"text": "court judge of a place unheard of"}\n', "utf-8")
    shares = run.transform(run.read(tmp_path / "new.jsonl", None))
    assert shares.shape == (2, 3)
    assert np.any(shares[0] != shares[1])


@pytest.mark.slow
def test_organisations_embed_their_own_documents(keys: Path, sentence_model: Path, tmp_path: Path) -> None:
    model = 'name = "zeroshot-tm"\nhidden = 8\nbatch = 32'
    plan = PLAN.replace('name = "lda"', model) + f'[embeddings]\nmodel = "{sentence_model}"\n'
    organisations = Organisations.of(keys, tmp_path / "all", plan)
    result, joined = trained(organisations, tmp_path / "coordinator")
    assert joined.problems == {}
    report = joined.reports["numpy"]
    assert report["rounds"] == 2
    run = FinishedRun.open(Path(report["directory"]))
    (tmp_path / "new.jsonl").write_text('{"text": "river water"}\n', "utf-8")
    assert run.transform(run.read(tmp_path / "new.jsonl", None)).shape == (1, 3)
    assert result.vocabulary == run.vocabulary


def test_the_weights_belong_to_the_agreement_and_the_place_does_not(sentence_model: Path, tmp_path: Path) -> None:
    other = tiny_model(tmp_path / "other", words=WORDS, seed=1)
    (tmp_path / "same").symlink_to(sentence_model)
    first, moved, changed = (agree(plan_of(place)).digest for place in (sentence_model, tmp_path / "same", other))
    assert first == moved
    assert first != changed
    assert first != agree(plan_of(sentence_model, embeddings__max_tokens=9)).digest
    plain = {"name": "prodlda", "n_topics": 3, "hidden": 8, "batch": 16}
    assert agree(small_plan(model=plain)).digest == agree(small_plan(model=plain, embeddings__max_tokens=9)).digest


def test_a_plan_that_names_the_weights_refuses_others(sentence_model: Path, tmp_path: Path) -> None:
    corpus = {"corpus__source": str(written(tmp_path)), "corpus__partition": "column"}
    plan = plan_of(sentence_model, embeddings__digest="0" * 64, **corpus)
    with pytest.raises(Mistake, match="has weights of digest"):
        corpora_of(plan, Unwatched())


def test_the_size_comes_from_the_sentence_model(sentence_model: Path) -> None:
    assert plan_of(sentence_model).model.settings["embedding_size"] == 16
    assert plan_of("all-MiniLM-L6-v2").model.settings["embedding_size"] == 384
    assert plan_of("all-MiniLM-L6-v2").embeddings.digest == USUAL_DIGEST
    wrong = {"name": "combined-tm", "embedding_size": 17}
    with pytest.raises(BadSetting, match="is not the size of embeddings by"):
        plan_of(sentence_model, model=wrong)


def test_a_role_that_embeds_nothing_needs_no_sentence_model() -> None:
    given = {"name": "combined-tm", "n_topics": 3, "embedding_size": 20}
    assert plan_of("only-at-the-parties", model=given, embeddings__digest="0" * 64).embeddings.digest == "0" * 64
    with pytest.raises(NoSentenceModel):
        plan_of("only-at-the-parties")


def test_documents_that_must_bring_embeddings(tmp_path: Path) -> None:
    corpus = {"corpus__source": str(written(tmp_path)), "corpus__partition": "column"}
    plan = plan_of("", **corpus)
    with pytest.raises(UnfitDocuments):
        execute(begin(tmp_path / "run", plan, corpora_of(plan, Unwatched())), Unwatched(), comparison=False)


def test_a_budget_embeds_each_text_alone(sentence_model: Path) -> None:
    with pytest.raises(BadSetting, match="lets an embedding depend on other documents"):
        plan_of(sentence_model, profile="dp-distributed", vocabulary__source="joint", embeddings__batch=2)
    assert plan_of(sentence_model, embeddings__batch=2).embeddings.batch == 2


def test_noise_on_words_covers_no_embedding(sentence_model: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(WORDS), "utf-8")
    words = {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": str(tmp_path / "words.txt")}
    with pytest.raises(EmbeddingsWithoutNoise, match="made of the words without it"):
        plan_of(sentence_model, profile="iftm", **words)
