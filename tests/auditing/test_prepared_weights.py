"""Weights that a coordinator prepares: a last bit decides whole rows, and documents are rebuilt from a masked sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.auditing.attack import Estimate, GroundTruth, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.prepared_weights import FARTHEST, attack, judge, pose
from securetm.auditing.attacks.trap_weights import between, imprint_for, imprinted_state, in_bin
from securetm.auditing.plans import Trial, read_audit_plan
from securetm.auditing.recorded import view_of
from securetm.auditing.roles import malicious_rounds
from securetm.auditing.runs import Demonstrations
from securetm.auditing.views import AdversaryView, PublicFacts, questions_in
from securetm.contracts import Array
from securetm.federation.folder import RunFolder
from securetm.federation.store import read_arrays
from securetm.mechanisms.clipping import BoundedCounts, Clip
from securetm.models.fixed_order import add_product
from securetm.models.neural.cpu_kernels import FusedKernels
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.prodlda import ProdLDA
from securetm.plans.agreement import agree
from securetm.plans.recommend import whole_plan
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import PARTIES, adversary, write_plan

WORDS = tuple(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(90))
EFFORT = {"rounds": 1, "documents": 41, "states": 2}
PRIVATE = ("dp-central", "dp-distributed", "dp-local", "fortress")
MODELS = {
    "prodlda": {"model.n_topics": 2, "model.hidden": 40, "model.dropout": 0.0, "model.device": "cpu"},
    "lda": {"model.n_topics": 4},
    "lda-vi": {"model.n_topics": 4},
    "neural-lda": {"model.n_topics": 2, "model.hidden": 40, "model.dropout": 0.0, "model.device": "cpu"},
    "nmf": {"model.n_topics": 4, "model.weighting": "counts"},
}
FEW = [(PRIVATE[place % len(PRIVATE)], model) for place, model in enumerate(MODELS)]
Facts = Callable[..., PublicFacts]


class AsLibrariesDo(FusedKernels):
    """A fault to be found: a product whose order of summation goes by the number of rows."""

    def dense(self, rows: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        left, right = rows.numpy(), weights.numpy()
        out = np.zeros((len(left), right.shape[1]), left.dtype) + (0 if bias is None else bias.numpy())
        step = -1 if len(left) % 2 else 1
        add_product(left[:, ::step], right[::step], out)
        return torch.from_numpy(out)


@pytest.fixture
def public(tmp_path: Path) -> Facts:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(WORDS))

    def facts(profile: str, model: str = "prodlda", **settings: Any) -> PublicFacts:
        listed = {"vocabulary.source": "file", "origins.vocabulary": "made up", "vocabulary.file": str(path)}
        plan = whole_plan(None, {"profile": profile, "model.name": model, **MODELS[model], **listed, **settings})
        return PublicFacts(PARTIES, agree(plan))

    return facts


def tried(facts: PublicFacts, seed: int = 0, documents: int = 41) -> tuple[Estimate, Estimate]:
    """How far neighbours came, and how far the same sums came with nobody left out."""
    counts = sparse.csr_array(np.random.default_rng(2).poisson(0.5, (documents, len(WORDS))))
    truth = GroundTruth(WORDS, {"north": counts}, {}, public=facts)
    posed = pose(truth, EFFORT, np.random.default_rng(seed))
    view = AdversaryView(adversary(), facts, {"request": ()}, WORDS, question=posed.question)
    chance = replace(view, question=posed.redrawn(np.random.default_rng(1)))
    truth = replace(truth, answer=posed.answer)
    told, control = (measure(judge(attack(one, EFFORT), truth)) for one in (view, chance))
    return told, control


def measure(judged: Score) -> Estimate:
    found = judged.measures[FARTHEST]
    assert isinstance(found, Estimate)
    return found


@pytest.mark.parametrize(("profile", "model"), quick([(profile, model) for profile in PRIVATE for model in MODELS], *FEW[:2]))
def test_our_rows_keep_within_what_noise_is_made_for(public: Facts, profile: str, model: str) -> None:
    told, chance = tried(public(profile, model))
    assert 0.4 < told.value <= 1.0  # and it is no blunt tool
    assert told.low < 1.0
    assert chance.value == 0.0
    assert told.ceiling == 2 * 41 - 1


@pytest.mark.parametrize("profile", quick(PRIVATE, PRIVATE[0]))
@pytest.mark.parametrize("dtype", quick(["float32", "float64"], "float32"))
def test_a_model_that_adds_as_libraries_do_is_refuted(
    public: Facts, profile: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = public(profile, **{"model.dtype": dtype})
    assert tried(facts)[0].low < 1.0
    monkeypatch.setattr(ProdLDA, "_kernels", AsLibrariesDo())
    told, chance = tried(public(profile, **{"model.dtype": dtype}))
    assert told.low > 1.5 > chance.high


@pytest.mark.parametrize("unit", quick(["document", "person"], "person"))
def test_rows_that_are_not_clipped_are_refuted(public: Facts, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unequal = {"nmf": {"model.equal_rows": False}}  # rows that a model itself makes of length 1 need no clip
    facts = {model: public("dp-local", model, **{"privacy.unit": unit, **unequal.get(model, {})}) for model in MODELS}
    monkeypatch.setattr(Clip, "row_radius", lambda *_: 1e3)
    monkeypatch.setattr(BoundedCounts, "on_rows", lambda self, rows, terms: rows)
    for one in facts.values():
        assert tried(one)[0].low > 1.0


# ---- traps -----------------------------------------------------------------------------------------------------------------


ON_SUMS = attack_called("trap_weights")
TRAPS = {"rounds": 2, "documents": 100}
EXACT = "documents recovered exactly"


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def inputs(counts: Array) -> Array:
    """What the network is given of a document."""
    logs = np.log1p(counts)
    return np.asarray(logs / np.linalg.norm(logs))


def test_a_bin_holds_what_lies_between_its_thresholds(documents: Any) -> None:
    """Against the model's own gradient: what neighbours differ by is that of the documents in the bin, and of no other."""
    model = ProdLDA(n_topics=20, hidden=40, batch=60)
    words = tuple(f"word{n}" for n in range(documents.shape[1]))
    state = imprinted_state(model.start(words, np.random.default_rng(1)), model, {"documents": 60})
    shape = NetworkShape(len(words), 40, 20)
    trap = imprint_for(shape, 60, 0)
    assert all(np.isfinite(array).all() for array in state.values())
    gradient = model.losses(state, documents, np.arange(60, dtype=np.uint64)).gradient(np.ones(60))
    binned = between(shape.views(gradient)["words"], trap)
    dense = documents.toarray()
    alone = [n for n in range(40) if sum(in_bin(trap, n, row) for row in dense) == 1]
    assert len(alone) > 5
    for place in alone:
        (row,) = (row for row in dense if in_bin(trap, place, row))
        direction = binned[:, place] / np.linalg.norm(binned[:, place])
        assert direction @ inputs(row) > 0.9


@pytest.fixture(scope="module")
def documents(parties: Any) -> Any:
    corpus = next(iter(parties.values()))
    return corpus.counts[:60].tocsr()


# ---- in a real run ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trial(documents_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    path = write_plan(
        tmp_path_factory.mktemp("trap") / "trap.toml",
        documents_file,
        attack="trap_weights",
        threat_model="active_coordinator",
        claim="the total is differentially private",
        profiles=["open", "masked"],
        measure=EXACT,
        meddled=2,
        batch=25,
        effort=TRAPS,
    )
    text = path.read_text("utf-8").replace('"model.n_topics" = 5', '"model.n_topics" = 20').replace("= 64", "= 100")
    path.write_text(text, "utf-8")
    return read_audit_plan(path).trials[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


def lied(runs: Demonstrations, trial: Trial, rounds: int) -> RunFolder:
    return runs.run("masked", trial.run, corruption=malicious_rounds(rounds, attack_called("trap_weights"), TRAPS))


@pytest.mark.slow
def test_the_coordinator_lies_in_the_first_rounds_only_and_the_model_does_not_move_there(
    trial: Trial, runs: Demonstrations
) -> None:
    folder = lied(runs, trial, 2)
    view = view_of(folder, adversary(model="active_coordinator"), ON_SUMS, 3)
    model = view.public.model
    shown = [one.state for one in questions_in(view).values() if one.question == "train"]
    assert len(shown) == 3
    prepared = [np.array_equal(imprinted_state(state, model, TRAPS)["weights"], state["weights"]) for state in shown]
    assert prepared == [True, True, False]
    start = model.start(view.vocabulary(), np.random.default_rng(view.public.plan.seed))
    assert np.array_equal(shown[2]["weights"], start["weights"])
    learned = read_arrays(folder.model, bare=True)[0]["weights"]
    assert not np.array_equal(learned, start["weights"])  # by the one honest round
    assert [guess.serial for guess in ON_SUMS.attack(view, TRAPS)] == sorted(questions_in(view))[:2]
