"""Whole audits of an epsilon, at 99.9 % and corrected: honest noise stands, half of it falls, and one run cannot see that."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.auditing.record import Finding
from securetm.auditing.runner import audit
from securetm.mechanisms.gaussian_noise import GaussianNoise
from securetm.mechanisms.samplers import rounded_gaussian

from .conftest import write_plan

GAUSSIAN = "share of one sum's epsilon that is shown, if the noise is Gaussian"
PRIVATE = {
    "threat_model": "private_answers",
    "adversary": "coordinator",
    "claim": "the total is differentially private",
    "profiles": ["open", "dp-local"],
    "refuted_from": 1.0,
    "confidence": 0.999,
}


def _found(path: Path, documents: Path, words: str, rounds: int, **changes: object) -> tuple[Finding, ...]:
    """Of runs of LDA over a public list of words."""
    plan = write_plan(path, documents, **PRIVATE, **changes)
    text = plan.read_text().split("[trial.run]")[0]
    listed = path.with_suffix(".txt")
    listed.write_text(words)
    plan.write_text(
        f'{text}[trial.run]\n"corpus.source" = "{documents}"\n"corpus.party" = "party"\n"corpus.partition" = "column"\n'
        f'"model.name" = "lda"\n"model.n_topics" = 5\n"training.rounds" = {rounds}\n"training.held_out" = 0.01\n'
        f'"vocabulary.source" = "file"\n"origins.vocabulary" = "made up"\n"vocabulary.file" = "{listed}"\n'
    )
    whole = audit(plan)
    assert {f.run.profile for f in whole.refuted_claims} <= {"dp-local"}
    return whole.findings


@pytest.fixture(scope="module")
def words(documents_file: Path) -> str:
    return "\n".join(f"{chr(97 + n % 26)}{chr(97 + n // 26)}aing" for n in range(120))


@pytest.fixture
def halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GaussianNoise, "noise", lambda self, terms, _: rounded_gaussian(self.noise_multiplier * terms.l2 / 2))


def _many(path: Path, documents: Path, words: str) -> tuple[Finding, ...]:
    effort = {"rounds": 1, "runs": 40_000}
    return _found(path, documents, words, 1, attack="many_run_epsilon", measure=GAUSSIAN, effort=effort)


@pytest.mark.usefixtures("halved")
def test_half_the_noise_is_refuted(tmp_path: Path, documents_file: Path, words: str) -> None:
    baseline, found = _many(tmp_path / "many.toml", documents_file, words)
    assert (baseline.outcome.verdict, found.outcome.verdict) == ("refuted", "refuted")
    assert found.outcome.measured.low > 1.5
