"""The matched form in a federation: each party's own topics go to the coordinator, so only a plain sum of answers admits it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin
from securetm.federation.questions import COHERENCE, TRAIN
from securetm.federation.simulation.simulation import execute
from securetm.federation.soundness import check
from securetm.federation.store import read_arrays
from securetm.models.lda.matched import Matched
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import SHARED, SUBJECTS, small_plan
from .played import Played, make_party, refusals, settled

ROUNDS = 4


def plan_of(profile: str = "open", name: str = "lda", **settings: Any) -> Plan:
    model = {"name": name, "form": "matched", "n_topics": 3, "sweeps": 8, "merged": "all", **settings}
    return small_plan(profile=profile, model=model, training__rounds=ROUNDS)


def learned(folder: Path) -> Mapping[str, Any]:
    return read_arrays(folder / "release/model.safetensors", bare=True)[0]


@pytest.mark.parametrize("name", quick(["lda", "sentence-lda"], "lda"))
def test_a_run_finds_what_parties_share_and_what_each_has_alone(
    name: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    result = execute(begin(tmp_path / "run", plan_of(name=name, topics_at={"north": 5}), corpora), Unwatched())
    best = min(figures["held_out_everywhere"] for figures in result["alone"].values())
    finished = FinishedRun.open(tmp_path / "run")
    whole = [set(words) for words in finished.topics(10)]
    for subject in SUBJECTS.values():
        assert max(len(words & set(subject)) for words in whole) >= 6
    assert len(result["topics"]) == len(whole) >= 3
    assert np.isfinite([result["quality"][name] for name in ("npmi", "diversity", "held_out")]).all()
    served = [figures["held_out"] for figures in result["shared_at_party"].values()]
    assert min(served) <= result["quality"]["held_out"] <= max(served)  # all were asked about the global topics
    model, state = finished.model, finished.state
    assert isinstance(model, Matched)
    assert {name: int(model.for_party(state, name)["held"][0]) for name in corpora} == {"north": 5, "south": 3, "west": 3}
    everywhere = [shared["held_out"] for shared in result["shared_at_party"].values()]
    assert max(everywhere) < best  # the global topics predict each party's documents better than any single party's predict all
    assert len(result["prevalence"]["north"]) == len(whole)


@pytest.fixture(scope="module")
def unbroken(corpora: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What a run learned that nothing interrupted."""
    folder = begin(tmp_path_factory.mktemp("runs") / "unbroken", plan_of(), corpora)
    execute(folder, Unwatched(), comparison=False)
    return learned(folder.path)


def test_each_party_is_shown_its_own_model_and_no_other(unbroken: Mapping[str, Any], corpora: Mapping[str, Corpus]) -> None:
    model = agree(plan_of()).model
    shown = {name: model.for_party(unbroken, name) for name in corpora}
    assert all(set(one) == {"counts", "held", "step", "seed"} for one in shown.values())
    assert not np.array_equal(shown["north"]["counts"], shown["south"]["counts"])


def test_a_party_answers_about_no_other_shape_than_agreed(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = plan_of(topics_at={"north": 5})
    played, party = Played(plan, tuple(corpora)), make_party("north", plan, corpora, tmp_path)
    settled(played, party, sorted({word for subject in SUBJECTS.values() for word in subject}))
    state = dict(played.fresh())
    answered = played.send(party, played.ask(TRAIN, state))
    assert np.frombuffer(answered.parcels[0], np.float32).reshape(-1, len(played.questions.vocabulary) + 1).shape[0] == 3
    larger = played.ask(TRAIN, state)
    played.send(party, played.altered(larger, state={**state, "counts": np.zeros((6, 30))}))
    played.send(party, played.altered(larger, state={**state, "counts": np.full_like(state["counts"], np.nan)}))
    assert [name for name, _ in refusals(party)] == ["BadState", "BadState"]
    many = {"top": np.zeros((200, 10), dtype=np.int64)}  # there may be more global topics than a party has
    assert played.send(party, played.ask(COHERENCE, many)).parcels


def test_behind_noise_on_single_words_it_still_finds_what_each_party_speaks_of(
    corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    words = tmp_path / "words.txt"
    words.write_text("\n".join(sorted({*SHARED, *(word for subject in SUBJECTS.values() for word in subject)})), "utf-8")
    public = {"source": "file", "file": str(words)}
    model = dict(plan_of().model.settings, name="lda")
    declared = {"origins__vocabulary": "made up"}
    plan = small_plan(profile="iftm", model=model, vocabulary=public, training__rounds=3, **declared)
    result = execute(begin(tmp_path / "run", plan, corpora), Unwatched(), comparison=False)
    for subject in SUBJECTS.values():
        assert max(len(set(topic) & set(subject)) for topic in result["topics"]) >= 5
    assert [spent["unit"] for spent in result["spent"]] == ["word"] * 3
    assert all(7.99 < spent["epsilon"] <= 8 for spent in result["spent"])  # once, however many rounds


@pytest.mark.parametrize("profile", ["masked", "bfv", "ckks"])
def test_a_hidden_sum_refuses_it_by_name(profile: str) -> None:
    gaps = [gap for gap in check(profile, "lda-matched", None, 5) if TRAIN in gap["claim"]]
    assert len(gaps) == 1
    assert "each party" in gaps[0]["reason"]


@pytest.mark.parametrize("profile", ["dp-local", "dp-central", "dp-distributed", "fortress"])
def test_noise_on_rows_of_documents_covers_it_nowhere(profile: str) -> None:
    assert any(TRAIN in gap["claim"] for gap in check(profile, "lda-matched", None, 10))
