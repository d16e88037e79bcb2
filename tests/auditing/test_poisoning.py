"""A party that lies: it sends what it likes in an otherwise real run, and the words of its choice come to the top."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.poisoning import STEERED, chosen, false_counts
from securetm.auditing.plans import read_audit_plan
from securetm.auditing.roles import malicious_parties
from securetm.auditing.runs import Demonstrations
from securetm.contracts import Block, Domain, Terms
from securetm.stages import Unwatched

from .conftest import write_plan

COUNTS = Terms((Block("counts", (4, 60)), Block("priors", (5,))), domain=Domain.INTEGER)


def test_a_lie_has_as_many_words_as_the_truth_and_only_the_chosen_ones() -> None:
    honest = np.random.default_rng(1).integers(0, 50, COUNTS.size)
    told = false_counts(honest, COUNTS)
    table, priors = told[:240].reshape(4, 60), told[240:]
    assert abs(int(table.sum()) - int(honest[:240].sum())) <= 12
    assert [set(np.flatnonzero(row)) for row in table] == [set(words) for words in chosen(4, 60)]
    assert (priors == honest[240:]).all()
    assert len(np.unique(chosen(4, 60))) == 12
    assert chosen(4, 60).max() < 60


@pytest.fixture(scope="module")
def plan(documents_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_plan(
        tmp_path_factory.mktemp("lying") / "lying.toml",
        documents_file,
        attack="poisoning",
        threat_model="lying_party",
        adversary="party",
        claim="one party cannot steer the topics",
        measure=STEERED,
        refuted_from=0.5,
        liars=1,
        effort={"rounds": 1},
    )
    text = path.read_text("utf-8").replace('"model.name" = "prodlda"', '"model.name" = "lda"')
    text = text.replace('"model.hidden" = 64\n', "").replace('"model.batch" = 25\n', "")
    path.write_text(text, "utf-8")
    return path


def test_a_lying_party_is_another_run_than_an_honest_one_and_the_same_lie_is_the_same_run(plan: Path, tmp_path: Path) -> None:
    settings = read_audit_plan(plan).trials[0].run
    runs = Demonstrations(tmp_path, Unwatched())
    lies = malicious_parties(1, attack_called("poisoning"))
    folders = [
        runs.run("open", settings),
        runs.run("open", settings, corruption=lies),
        runs.run("open", settings, corruption=lies),
    ]
    assert folders[0].path != folders[1].path == folders[2].path
