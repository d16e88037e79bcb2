"""A training that begins at topics of public word vectors: who reads them, what it says, and what is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.corpus import word_vectors
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Mistake
from securetm.federation.coordinator.training import CHECKPOINT
from securetm.federation.coordinator.words import KEPT_AS
from securetm.federation.folder import begin
from securetm.federation.origins import Beginning
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import CoordinatorStore, read_arrays
from securetm.models.public_knowledge import FREQUENCIES, PublicKnowledge
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from .conftest import FIVE, SHARED, small_plan
from .joined import NAMES, PLAN, Organisations, trained
from .private import PUBLIC, private_plan

LDA_VI = {"name": "lda-vi", "n_topics": 4}


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """A file of vectors in which the words of a subject are alike."""
    rng, lines = np.random.default_rng(0), []
    for number, words in enumerate([*list(FIVE.values())[:3], SHARED]):
        for word in words[1:]:  # the first of each is not known
            row = np.eye(4)[number] + 0.05 * rng.normal(size=4)
            lines.append(" ".join([word, *map(str, row)]))
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def plan_of(folder: Path, vectors: Path, profile: str = "dp-central", **more: Any) -> Plan:
    settings = {"model": LDA_VI, "training__rounds": 1, "training__vectors": str(vectors), **more}
    paid = {"privacy__epsilon": 8.0} if profile.startswith("dp-") else {}
    named = settings["training__vectors"]
    return private_plan(folder, profile, **settings, **paid, **({"origins__vectors": "made up"} if named else {}))


@pytest.mark.slow
def test_a_private_run_says_where_it_began_and_what_no_document_made(
    five: Mapping[str, Corpus], vectors: Path, tmp_path: Path
) -> None:
    result = execute(begin(tmp_path / "run", plan_of(tmp_path, vectors), five), Unwatched(), comparison=False)
    known = {"words_known": len(PUBLIC) - 4, "words": len(PUBLIC)}
    assert result["start"] == {"topics": "public", "vectors": "vectors.txt", **known, "lacking": False}
    assert result["control"]["held_out"] > 1
    assert set(result["control"]) == {"npmi", "held_out", "diversity"}
    state = read_arrays(tmp_path / "run/release/model.safetensors", bare=True)[0]
    public = PublicKnowledge.kept_in(state)
    assert public is not None
    for number, subject in enumerate(list(FIVE.values())[:3]):
        found = {PUBLIC[word] for topic in public.topics for word in np.argsort(-topic)[:9]} & set(subject[1:])
        assert len(found) == 9, number


def test_the_digest_of_the_vectors_is_agreed_on_and_not_their_place(vectors: Path, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, vectors)
    moved = tmp_path / "elsewhere.txt"
    moved.write_bytes(vectors.read_bytes())
    same = agree(plan_of(tmp_path, moved))
    assert agree(plan).digest == same.digest
    moved.write_bytes(vectors.read_bytes() + b"more 1 0 0 0\n")
    assert agree(plan_of(tmp_path, moved)).digest != same.digest
    with pytest.raises(Mistake, match=r"elsewhere\.txt"):
        same.start(PUBLIC)


def test_vectors_that_are_not_here(vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_default = plan_of(tmp_path, vectors, training__vectors="")
    assert Beginning.under(agree(by_default), PUBLIC).start == "public"
    monkeypatch.setattr(word_vectors, "GLOVE_PACKAGE", "no_such_package_of_vectors")
    monkeypatch.setattr(word_vectors, "USUAL", "no-such-sentence-model")
    assert Beginning.under(agree(by_default), PUBLIC).facts(9) == {"topics": "plain", "lacking": True}
    asked = plan_of(tmp_path, vectors, training__vectors="", training__start="public")
    with pytest.raises(Mistake, match="glove are not installed"):
        agree(asked).start(PUBLIC)


def test_what_cannot_begin_at_public_topics_is_refused(vectors: Path, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="no table of topics"):
        small_plan(training__start="public")
    with pytest.raises(BadSetting, match="plain"):
        small_plan(training__start="glove")
    with pytest.raises(BadSetting, match="only a public start reads vectors"):
        plan_of(tmp_path, vectors, training__start="plain")
    with pytest.raises(Mistake, match="no ordinary file"):
        plan_of(tmp_path, Path("/dev/zero"))
    vectors.write_text("", "utf-8")
    with pytest.raises(Mistake, match="holds no vector"):
        agree(plan_of(tmp_path, vectors)).start(PUBLIC)


def test_a_coordinator_and_parties_of_their_own_begin_at_public_topics(keys: Path, vectors: Path, tmp_path: Path) -> None:
    organisations = Organisations.of(keys, tmp_path / "all", PLAN.replace('"lda"', '"lda-vi"') + f'vectors = "{vectors}"\n')
    result, joined = trained(organisations, tmp_path / "coordinator")
    assert joined.problems == {}
    assert PublicKnowledge.kept_in(result.state) is not None
    for name in NAMES:
        landed = read_arrays(Path(joined.reports[name]["directory"]) / "release/model.safetensors", bare=True)[0]
        assert all(np.array_equal(landed[part], result.state[part]) for part in result.state)


@pytest.mark.slow
def test_words_that_opened_sums_told_begin_at_their_own_frequencies(vectors: Path, tmp_path: Path) -> None:
    """Half of the documents have "judge", and hardly one "appeal"."""
    texts = [f"court law {'judge' if n % 2 else 'trial'} {'appeal' if n % 20 == 0 else 'court'}" for n in range(800)]
    parties = {name: Corpus.from_strings(texts, name=name) for name in ("north", "south", "west", "east", "centre")}
    settings = {"training__rounds": 1, "training__vectors": str(vectors), "model": LDA_VI, "vocabulary__min_documents": 1}
    settings |= {"origins__vectors": "made up"}
    folder = begin(tmp_path / "run", small_plan(profile="dp-distributed", privacy__epsilon=8.0, **settings), parties)
    execute(folder, Unwatched(), comparison=False)
    words = (folder.coordinator / "vocabulary.txt").read_text().split("\n")
    begun = dict(zip(words, read_arrays(folder.coordinator / f"{CHECKPOINT}.safetensors")[0][FREQUENCIES], strict=True))
    assert begun["judge"] > 3 * begun["appeal"]
    assert begun["judge"] == pytest.approx(begun["trial"], rel=0.2)  # in general texts the one is far more frequent
    store = CoordinatorStore(folder.coordinator)
    assert json.loads(store.get(KEPT_AS) or b"{}")["frequencies"] == list(begun.values())
    store.close()
    assert not list(folder.coordinator.glob("sum-of-words-*"))
