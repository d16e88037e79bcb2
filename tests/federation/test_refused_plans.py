"""Plans and folders that no run can be made of are refused before any document is read, with what to do instead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest

from securetm import federate
from securetm.contracts import Budget, TopicModel, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Mistake, Misuse, NeedsSum, NotFound, SecuretmError
from securetm.federation.budget.prices import calibrated
from securetm.federation.folder import RUN, begin, bind, reopen
from securetm.federation.simulation.simulation import execute
from securetm.federation.soundness import check, check_answerable, gaps_of_questions
from securetm.federation.store import DamagedStore, read_arrays, write_bytes
from securetm.models import MODELS
from securetm.models.trials import CouplesDocuments
from securetm.plans.agreement import agree
from securetm.plans.profiles import read_profile
from securetm.plans.recommend import plan_from_tables, whole_plan
from securetm.registries import OURS
from securetm.resources import data_folder, toml_names
from securetm.stages import Unwatched

from ..models.test_row_trial import COUPLED_ROWS, Toy
from .conftest import small_plan

UNSOUND: Mapping[str, tuple[Mapping[str, object], type[SecuretmError], str]] = {
    "model": ({"model.name": "magic"}, NotFound, "magic"),
    "no topic": ({"model.n_topics": 0}, BadSetting, "n_topics"),
    "one topic of a network": ({"model.name": "prodlda", "model.n_topics": 1}, BadSetting, "n_topics"),
    "learning rate": ({"model.name": "prodlda", "model.learning_rate": -0.1}, BadSetting, "learning_rate"),
    "learning rate in words": ({"model.name": "prodlda", "model.learning_rate": "slow"}, BadSetting, "learning_rate"),
    "no rounds": ({"training.rounds": 0}, BadSetting, "rounds"),
    "held out": ({"training.held_out": 1.5}, BadSetting, "held_out"),
    "nothing held out": ({"training.held_out": 0}, BadSetting, "held_out"),
    "stop": ({"training.stop": "now"}, BadSetting, "stop"),
    "every": ({"training.every": 0}, BadSetting, "every"),
    "patience": ({"training.patience": 0}, BadSetting, "patience"),
    "tolerance": ({"training.tolerance": -1}, BadSetting, "tolerance"),
    "section": ({"trainings.rounds": 5}, NotFound, "trainings"),
    "setting": ({"training.round": 5}, NotFound, "round"),
    "setting of a model": ({"model.topics": 5}, NotFound, "topics"),
    "type": ({"training.rounds": 2.5}, BadSetting, "rounds"),
    "truth": ({"tokeniser.lower": "maybe"}, BadSetting, "lower"),
    "a number for a section": ({"training": 5}, BadSetting, "training"),
    "a number for a model": ({"model": 5}, BadSetting, "model"),
    "a section for a number": ({"seed.x": 5}, BadSetting, "seed"),
    "seed": ({"seed": -1}, BadSetting, "seed"),
    "huge seed": ({"seed": 2**63}, BadSetting, "seed"),
    "vocabulary file": (
        {"vocabulary.source": "file", "origins.vocabulary": "made up", "vocabulary.file": "absent.txt"},
        BadSetting,
        "absent.txt",
    ),
    "no vocabulary file": ({"vocabulary.source": "file"}, BadSetting, "file"),
    "vocabulary source": ({"vocabulary.source": "guess"}, BadSetting, "source"),
    "max_words": ({"vocabulary.max_words": 1}, BadSetting, "max_words"),
    "max_share": ({"vocabulary.max_share": 0}, BadSetting, "max_share"),
    "stop words": ({"tokeniser.stop_words": "absent.txt"}, BadSetting, "absent.txt"),
    "pattern": ({"tokeniser.pattern": "("}, BadSetting, "pattern"),
    "min_length": ({"tokeniser.min_length": 0}, BadSetting, "min_length"),
    "partition": ({"corpus.partition": "half"}, BadSetting, "partition"),
    "parties": ({"corpus.parties": 0}, BadSetting, "parties"),
    "alpha": ({"corpus.alpha": 0}, BadSetting, "alpha"),
    "no epsilon at all": ({"profile": "dp-local", "privacy.epsilon": 0}, BadSetting, "`epsilon` in [privacy] is 0"),
    "no noise at all": ({"profile": "dp-local", "privacy.noise": 0.0}, BadSetting, "`noise` in [privacy] is 0"),
    "an epsilon without end": ({"profile": "dp-local", "privacy.epsilon": float("inf")}, BadSetting, "epsilon"),
    "a budget under no budget": ({"privacy.epsilon": 3.0}, BadSetting, "epsilon"),
    "profile": ({"profile": "magic"}, NotFound, "magic"),
    "profile file": ({"profile": "absent.toml"}, NotFound, "absent.toml"),
}


@pytest.mark.parametrize("what", UNSOUND)
def test_an_unsound_plan_is_refused_before_any_document_is_read(what: str) -> None:
    overrides, kind, named = UNSOUND[what]
    with pytest.raises(kind) as refusal:
        whole_plan(None, overrides)
    assert isinstance(refusal.value, Misuse)
    assert refusal.value.exit_code == 2
    assert named in str(refusal.value)
    assert refusal.value.advice()


def test_a_plan_as_kept_is_the_plan(tmp_path: Path) -> None:
    plan = small_plan(training__rounds=7)
    again = plan_from_tables(json.loads(json.dumps(plan.tables())), "run.json")
    assert again == plan
    assert agree(again).digest == agree(plan).digest
    assert agree(replace(plan, seed=1)).digest != agree(plan).digest
    assert agree(replace(plan, corpus=replace(plan.corpus, source="elsewhere"))).digest == agree(plan).digest


def test_one_party_is_no_federation(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="fewer than the 2"):
        begin(tmp_path / "run", small_plan(), {"north": corpora["north"]})
    assert not (tmp_path / "run" / "parties").exists()


# ---- folders -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"plan": {}}',
        '{"plan": {}, "members": 3, "with_content": true}',
        '{"plan": 1e308, "members": ["a"], "with_content": true, "keys": {"a": ""}, "name": "a", "ledgers": "l"}',
        "null",
        "[" * 100_000,
    ],
    ids=range(8),
)
def test_a_record_that_is_none(content: str, tmp_path: Path) -> None:
    write_bytes(tmp_path / "run.json", content.encode())
    bind(tmp_path, [tmp_path / "run.json"])
    with pytest.raises(DamagedStore, match=r"run\.json"):
        reopen(tmp_path)


def test_batches_that_all_parties_would_refuse_are_refused_with_advice(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """A party says no more than its refusal's name; whoever makes the plan is told how many documents are needed."""
    settings = {"profile": "masked", "model.name": "prodlda", "model.batch": 24, "vocabulary.min_documents": 1}
    with pytest.raises(
        BadSetting, match=r"`batch` in \[model\] is 24; it is below the 25 documents that each of 5 parties must bring"
    ):
        federate(five, tmp_path / "run", settings, comparison=False)
    assert not (tmp_path / "run").exists()


def test_parties_of_any_name_get_folders_of_their_own(tmp_path: Path) -> None:
    names = ["North & South", "north/south", "../../etc", "ß" * 5, "x" * 300, "X" * 300, " ", "."]
    corpora = {name: Corpus.from_strings([f"river boat {n}"], name=name) for n, name in enumerate(names)}
    folder = begin(tmp_path / "run", small_plan(), corpora)
    places = [folder.party(name).resolve() for name in names]
    assert len(set(places)) == len(names)
    assert all(place.parent == (tmp_path / "run" / "parties").resolve() and place.is_dir() for place in places)


def test_a_model_whose_documents_depend_on_each_other_gets_no_budget() -> None:
    """`check` names it, and no noise is made for it."""
    agreement = agree(whole_plan(None, {"profile": "dp-central", "vocabulary.file": "english", "privacy.epsilon": 1.0}))
    coupled = replace(agreement, model=cast("TopicModel", Toy(COUPLED_ROWS["averaged"])))
    with pytest.raises(CouplesDocuments):
        calibrated(coupled, 5)
    with patch("securetm.federation.soundness._refusals", return_value=()):  # the toy answers no other question of a run
        assert [gap.claim for gap in gaps_of_questions(coupled, 5)] == ["a budget covers the model's answers"]
        assert not gaps_of_questions(agreement, 5)


# ---- names that are not there, and what a profile refuses ------------------------------------------------------------------


MATCHED: Mapping[str, Any] = {"name": "lda", "form": "matched", "n_topics": 3, "sweeps": 2}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"name": "lda", "form": "martched"}, "must be aligned or matched"),
        ({"name": "lda-vi", "form": "matched"}, "lda-vi has one form only"),
        ({"name": "lda-matched", "form": "aligned"}, "lda-matched has one form only"),
        ({**MATCHED, "topics_at": "3"}, "topics_at.NAME=value"),
        ({**MATCHED, "topics_at": {"north": "2.5"}}, "`topics_at.north` in .* is '2.5'; it must be a whole number"),
        ({**MATCHED, "topics_at": {"north": 0}}, "1 to 65536 topics"),
    ],
)
def test_a_form_or_a_number_of_topics_that_cannot_be(model: Mapping[str, Any], said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        plan_from_tables({"profile": "open", "model": model}, "a test")


def test_a_party_trains_alone_with_as_many_topics_as_it_has_in_the_federation(
    corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = small_plan(model={**MATCHED, "topics_at": {"north": 5, "west": 1}}, training__rounds=2)
    result = execute(begin(tmp_path / "run", plan, corpora), Unwatched())
    assert {name: len(topics) for name, topics in result["topics_alone"].items()} == {"north": 5, "south": 3, "west": 1}
    own = read_arrays(next((tmp_path / "run/parties").glob("*-west")) / "alone.safetensors")[0]
    assert int(own["held"][0]) == 1


def test_what_a_profile_refuses_is_said_before_documents_are_settled(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(profile="masked", model=MATCHED)
    with pytest.raises(NeedsSum):
        check_answerable(agree(plan), 4)
    with pytest.raises(NeedsSum):
        begin(tmp_path / "run", plan, five)
    assert not (tmp_path / "run" / RUN).exists()
    check_answerable(agree(small_plan(profile="masked", model={"name": "lda", "n_topics": 1})), 4)


@pytest.mark.parametrize("profile", ["open", "iftm"])
def test_a_list_without_a_word_of_anybodys_is_refused_before_it_is_paid_for(
    profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    (tmp_path / "words.txt").write_text("zebra\ngiraffe\n", "utf-8")
    listed = {"source": "file", "file": str(tmp_path / "words.txt")}
    with pytest.raises(Mistake, match="no document has a word of"):
        begin(
            tmp_path / "run",
            small_plan(profile=profile, model={"name": "lda"}, vocabulary=listed, origins__vocabulary="made up"),
            corpora,
        )
    assert not (tmp_path / "ledgers").exists()


def test_a_budget_below_what_is_drawn_at_once(tmp_path: Path) -> None:
    text = (data_folder("protocols") / "profiles/iftm.toml").read_text("utf-8")
    (tmp_path / "iftm.toml").write_text(text.replace("epsilon = 8.0\ndelta", "epsilon = 4.0\ndelta"), "utf-8")
    with pytest.raises(BadSetting, match="less than the 8 that laplace_counts draws at once"):
        read_profile(str(tmp_path / "iftm.toml"))
    assert read_profile(str(tmp_path / "iftm.toml"), {"epsilon": 2.0}).budget == Budget(Unit.WORD, 2.0, 1e-9)


# ---- which model runs under which profile ----------------------------------------------------------------------------------


PARTY_ROWS = {"fednmf"}  # a row is a party's whole training: no budget of documents bounds it
EACH = {"lda-matched", "sentence-lda-matched"}  # need every party's own answer
READ_EMBEDDINGS = {"combined-tm", "semantic", "zeroshot-tm"}
NAMED_IN_THE_PLAN = {"torch-module"}  # a stranger's module: the plan names it
MODELS_OF_OURS = sorted({one.name for one in MODELS.listed() if one.package == OURS} - NAMED_IN_THE_PLAN)
BUDGETED = {"dp-central", "dp-distributed", "dp-local", "fortress"}


def refused(model: str, profile: str) -> bool:
    if model in EACH:
        return profile not in ("open", "iftm")
    return (model in PARTY_ROWS and profile in BUDGETED) or (model in READ_EMBEDDINGS and profile == "iftm")


@pytest.mark.parametrize("model", MODELS_OF_OURS)
def test_a_model_is_sound_under_a_profile_or_refused_with_a_reason(model: str) -> None:
    for profile in toml_names("protocols", "profiles"):
        gaps = check(profile, model, None, 5)
        assert bool(gaps) == refused(model, profile), (profile, gaps)
        assert all(gap["reason"] and gap["hint"] for gap in gaps)
