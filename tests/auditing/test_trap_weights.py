"""A coordinator that shows weights of its own rebuilds documents from a masked sum, and none from an answer under its mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.trap_weights import between, imprint_for, imprinted_state, in_bin
from securetm.auditing.plans import Trial, read_audit_plan
from securetm.auditing.recorded import view_of
from securetm.auditing.roles import malicious_rounds
from securetm.auditing.runs import Demonstrations
from securetm.auditing.views import questions_in
from securetm.contracts import Array
from securetm.federation.folder import RunFolder
from securetm.federation.store import read_arrays
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.prodlda import ProdLDA
from securetm.stages import Unwatched

from .conftest import adversary, write_plan

ON_SUMS = attack_called("trap_weights")
EFFORT = {"rounds": 2, "documents": 100}
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
        effort=EFFORT,
    )
    text = path.read_text("utf-8").replace('"model.n_topics" = 5', '"model.n_topics" = 20').replace("= 64", "= 100")
    path.write_text(text, "utf-8")
    return read_audit_plan(path).trials[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


def lied(runs: Demonstrations, trial: Trial, rounds: int) -> RunFolder:
    return runs.run("masked", trial.run, corruption=malicious_rounds(rounds, attack_called("trap_weights"), EFFORT))


@pytest.mark.slow
def test_the_coordinator_lies_in_the_first_rounds_only_and_the_model_does_not_move_there(
    trial: Trial, runs: Demonstrations
) -> None:
    folder = lied(runs, trial, 2)
    view = view_of(folder, adversary(model="active_coordinator"), ON_SUMS, 3)
    model = view.public.model
    shown = [one.state for one in questions_in(view).values() if one.question == "train"]
    assert len(shown) == 3
    prepared = [np.array_equal(imprinted_state(state, model, EFFORT)["weights"], state["weights"]) for state in shown]
    assert prepared == [True, True, False]
    start = model.start(view.vocabulary(), np.random.default_rng(view.public.plan.seed))
    assert np.array_equal(shown[2]["weights"], start["weights"])
    learned = read_arrays(folder.model, bare=True)[0]["weights"]
    assert not np.array_equal(learned, start["weights"])  # by the one honest round
    assert [guess.serial for guess in ON_SUMS.attack(view, EFFORT)] == sorted(questions_in(view))[:2]
