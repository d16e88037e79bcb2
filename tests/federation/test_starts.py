"""A training that begins at topics of moments or of public vectors: what is asked before it, what it costs, what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.composition import total
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Spend
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Answer
from securetm.corpus import word_vectors
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Mistake
from securetm.federation.budget.prices import bill_of, calibrated
from securetm.federation.coordinator.training import CHECKPOINT
from securetm.federation.coordinator.words import KEPT_AS
from securetm.federation.folder import begin
from securetm.federation.origins import Beginning
from securetm.federation.questions import PAIRS, TRAIN, Questions
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import CoordinatorStore, read_arrays
from securetm.federation.wire import wire
from securetm.models.public_knowledge import FREQUENCIES, PublicKnowledge
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import FIVE, SHARED, small_plan
from .joined import NAMES, PLAN, Organisations, trained
from .played import Played
from .private import PUBLIC, paid, paying_parties, private_plan, settle

# ---- topics of moments -----------------------------------------------------------------------------------------------------


MODELS = ("lda", "lda-vi", "sentence-lda", "nmf", "fednmf")
START = {"training__start": "moments", "training__vectors": "none"}


def plan_of(folder: Path, profile: str = "dp-central", model: str = "lda-vi", **more: Any) -> Plan:
    settings = {"model": {"name": model, "n_topics": 3}, "training__rounds": 2, **START, **more}
    paid = {"privacy__epsilon": 3.0, "privacy__unit": "document"} if profile.startswith("dp-") else {}
    return private_plan(folder, profile, **{**paid, **settings})


@pytest.mark.parametrize("profile", quick(["dp-central", "dp-distributed"], "dp-distributed"))
def test_the_first_question_is_asked_once_and_all_of_it_is_in_the_ledger(
    profile: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    folder = begin(tmp_path / "run", plan_of(tmp_path, profile), five)
    result = execute(folder, Unwatched(), comparison=False)
    assert (result["rounds"], result["start"]) == (2, {"topics": "moments", "lacking": False})
    assert [one["about"]["question"] for one in paid(folder.ledger("north"))] == [PAIRS, TRAIN, TRAIN]
    assert all(2.7 < spent["epsilon"] <= 3.0 for spent in result["spent"])


@pytest.mark.parametrize("profile", ["masked"])
def test_without_a_budget_the_sum_is_exact(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    result = execute(begin(tmp_path / "run", plan_of(tmp_path, profile), five), Unwatched(), comparison=False)
    assert result["start"]["topics"] == "moments"
    assert result["useful"]


@pytest.mark.parametrize("model", MODELS)
def test_every_table_of_topics_begins_at_those_of_the_sum(model: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    agreement = agree(plan_of(tmp_path, "masked", model))
    documents = Corpus.concat([corpus.project(PUBLIC) for corpus in five.values()], name="all")
    query = Questions(agreement, PUBLIC).make(PAIRS, {})
    summed = ClippedRowSum(query.terms, 1.0)
    query.answer(documents, summed, {}, np.random.default_rng(0))
    answer = Answer(summed.blocks())
    state, again = (agreement.start_after(PUBLIC, answer) for _ in range(2))
    found = agreement.topics_before.found(PUBLIC, answer, None).topics
    shown = agreement.model.topics(state)
    assert agreement.model.fits(state, len(PUBLIC))
    assert all(np.array_equal(state[name], again[name]) for name in state)
    assert [set(np.argsort(-topic)[:5]) for topic in shown] == [set(np.argsort(-topic)[:5]) for topic in found]


@pytest.mark.slow
def test_its_share_of_the_budget_is_billed_and_the_noise_of_the_rounds_makes_room_for_it(tmp_path: Path) -> None:
    epsilons = {}
    for share in (0.2, 0.8):
        agreement = calibrated(agree(plan_of(tmp_path, training__start_share=share)), 5)
        bill = bill_of(agreement, 5)
        assert bill.start is not None
        assert bill.start.event == GaussianDpEvent(agreement.noise_of_start)
        epsilons[share] = total([bill.start], ALONE * 1e-5).epsilon, agreement.plan.privacy.noise
        assert 2.9 < total(bill.spends(), ALONE * 1e-5).epsilon <= 3.0
    assert 1.2 < epsilons[0.2][0] < 1.5 < 2.5 < epsilons[0.8][0] < 3.0
    assert epsilons[0.2][1] < epsilons[0.8][1]


def test_a_party_answers_it_once_and_before_the_training(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "dp-local", privacy__noise=1.0)
    party = paying_parties(plan, five, tmp_path)["north"]
    assert party.ledger is not None
    played = Played(plan, tuple(five))
    settle(played, party)
    assert played.send(party, played.ask(PAIRS, {}, number=1)) == wire.Refusal("AskedTooOften")
    who = {"profile": plan.profile, "digest": party.agreement.profile.digest.hex(), "unit": "document"}
    party.ledger.record(party.run, Spend(GaussianDpEvent(100.0)), {**who, "question": TRAIN, "serial": 1})
    assert played.send(party, played.ask(PAIRS, {}, serial=2)) == wire.Refusal("OutOfTurn")
    party.close()


def test_it_is_refused_where_the_plan_does_not_ask_it(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "dp-local", privacy__noise=1.0)
    plain = plan_of(tmp_path, "dp-local", privacy__noise=1.0, training__start="plain", training__vectors="")
    party = paying_parties(plain, five, tmp_path)["north"]
    played, other = Played(plain, tuple(five)), Played(plan, tuple(five))
    settle(played, party)
    other.adopt(PUBLIC)
    assert played.send(party, replace(other.ask(PAIRS, {}))) == wire.Refusal("UnknownQuestion")
    party.close()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model": "moments"}, "by itself"),
        ({"model": "prodlda"}, "no table of topics"),
        ({"profile": "bfv"}, "only the parties open sums"),
        ({"profile": "iftm", "model": "lda"}, "cannot be had under iftm"),
        ({"profile": "masked", "training__start_share": 0.5}, "no budget is spent"),
        ({"training__start_share": 0.99}, "must be from 0"),
        ({"training__start": "plain", "training__vectors": "", "training__start_share": 0.5}, "a question of its own"),
        ({"training__start": "public"}, "can do without vectors"),
    ],
)
def test_what_cannot_begin_there_is_refused(settings: Mapping[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=says):
        plan_of(tmp_path, **settings)


NETWORK = """
profile = "dp-distributed"
[model]
name = "lda-vi"
n_topics = 3
[vocabulary]
file = "{words}"
[origins]
vocabulary = "made up"
[training]
rounds = 2
held_out = 0.2
start = "moments"
vectors = "none"
[privacy]
unit = "document"
epsilon = 4.0
"""


@pytest.mark.slow
def test_organisations_of_their_own_answer_it_over_a_network(keys: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(PUBLIC), "utf-8")
    plan = NETWORK.format(words=tmp_path / "words.txt")
    organisations = Organisations.of(keys, tmp_path / "all", plan)
    _, joined = trained(organisations, tmp_path / "coordinator")
    assert joined.problems == {}
    for report in joined.reports.values():
        assert report["answered"] == {PAIRS: 1, TRAIN: 2}
        assert 3.6 < report["spent"]["epsilon"] <= 4.0


# ---- topics of public word vectors -----------------------------------------------------------------------------------------


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


def plan_with_vectors(folder: Path, vectors: Path, profile: str = "dp-central", **more: Any) -> Plan:
    settings = {"model": LDA_VI, "training__rounds": 1, "training__vectors": str(vectors), **more}
    paid = {"privacy__epsilon": 8.0} if profile.startswith("dp-") else {}
    named = settings["training__vectors"]
    return private_plan(folder, profile, **settings, **paid, **({"origins__vectors": "made up"} if named else {}))


@pytest.mark.slow
def test_a_private_run_says_where_it_began_and_what_no_document_made(
    five: Mapping[str, Corpus], vectors: Path, tmp_path: Path
) -> None:
    result = execute(begin(tmp_path / "run", plan_with_vectors(tmp_path, vectors), five), Unwatched(), comparison=False)
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
    plan = plan_with_vectors(tmp_path, vectors)
    moved = tmp_path / "elsewhere.txt"
    moved.write_bytes(vectors.read_bytes())
    same = agree(plan_with_vectors(tmp_path, moved))
    assert agree(plan).digest == same.digest
    moved.write_bytes(vectors.read_bytes() + b"more 1 0 0 0\n")
    assert agree(plan_with_vectors(tmp_path, moved)).digest != same.digest
    with pytest.raises(Mistake, match=r"elsewhere\.txt"):
        same.start(PUBLIC)


def test_vectors_that_are_not_here(vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_default = plan_with_vectors(tmp_path, vectors, training__vectors="")
    assert Beginning.under(agree(by_default), PUBLIC).start == "public"
    monkeypatch.setattr(word_vectors, "GLOVE_PACKAGE", "no_such_package_of_vectors")
    monkeypatch.setattr(word_vectors, "USUAL", "no-such-sentence-model")
    assert Beginning.under(agree(by_default), PUBLIC).facts(9) == {"topics": "plain", "lacking": True}
    asked = plan_with_vectors(tmp_path, vectors, training__vectors="", training__start="public")
    with pytest.raises(Mistake, match="glove are not installed"):
        agree(asked).start(PUBLIC)


def test_what_cannot_begin_at_public_topics_is_refused(vectors: Path, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="no table of topics"):
        small_plan(training__start="public")
    with pytest.raises(BadSetting, match="plain"):
        small_plan(training__start="glove")
    with pytest.raises(BadSetting, match="only a public start reads vectors"):
        plan_with_vectors(tmp_path, vectors, training__start="plain")
    with pytest.raises(Mistake, match="no ordinary file"):
        plan_with_vectors(tmp_path, Path("/dev/zero"))
    vectors.write_text("", "utf-8")
    with pytest.raises(Mistake, match="holds no vector"):
        agree(plan_with_vectors(tmp_path, vectors)).start(PUBLIC)


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
