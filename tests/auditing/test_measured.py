"""The figures that our attacks should reach, on real texts that not everybody has: short posts and news, and on docstrings."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.auditing.attack import Proportion
from securetm.auditing.attacks import attack_called
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.parts.reconstruction_scores import EXACT, PRECISION, RECALL
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.runs import Demonstrations
from securetm.stages import Unwatched

from .conftest import adversary

SHORT, NEWS = "tagmynews.jsonl.gz", "20newsgroups.jsonl.gz"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    return Demonstrations(tmp_path_factory.mktemp("measured"), Unwatched())


def shares(runs: Demonstrations, source: Path, name: str, batch: int) -> dict[str, float]:
    folder = runs.run(
        "open", {"corpus.source": str(source), "model.name": "prodlda", "model.batch": batch, "training.rounds": 8}
    )
    attack = attack_called(name)
    view = view_of(folder, adversary(), attack, 8)
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, 8).values())
    worth = attack.judge(attack.attack(view, {"documents": 400, "rounds": 8}), truth).measures
    return {measure: one.hits / max(one.of, 1) for measure, one in worth.items() if isinstance(one, Proportion)}


@pytest.mark.slow
@pytest.mark.parametrize("source", [SHORT, NEWS])
def test_open_is_as_open_as_it_says(runs: Demonstrations, shared_data: Path, source: str) -> None:
    assert shares(runs, shared_data / source, "gradient_inversion", 1)[EXACT] == 1.0
    assert shares(runs, shared_data / source, "decoder_inversion", 1)[EXACT] >= 0.95
    assert shares(runs, shared_data / source, "gradient_inversion", 8)[EXACT] >= 0.95
    words = shares(runs, shared_data / source, "gradient_inversion", 64)
    assert words[PRECISION] == words[RECALL] == 1.0
