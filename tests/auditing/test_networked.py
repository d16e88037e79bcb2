"""Audits of runs whose messages passed a real network: they read the transcript as that of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.recorded import questions_of
from securetm.auditing.roles import over_network
from securetm.auditing.runner import audit
from securetm.corpus.corpus import Corpus
from securetm.errors import Mistake
from securetm.federation.folder import RunFolder, begin
from securetm.federation.questions import TRAIN
from securetm.federation.simulation.simulation import train
from securetm.federation.transcript import Transcript
from securetm.stages import Unwatched

from ..federation.conftest import corpora, five, small_plan  # noqa: F401 - fixtures
from .conftest import write_plan

pytestmark = pytest.mark.own_draws  # threads draw at once, and the stream of a test serves one of them


@pytest.fixture(scope="module")
def networked(five: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> RunFolder:  # noqa: F811
    """A masked run over mutual TLS, recorded."""
    plan = small_plan(profile="masked", model__batch=25, training__rounds=3)
    run = begin(tmp_path_factory.mktemp("networked") / "run", plan, five, with_content=True)
    train(run, Unwatched(), **over_network().roles(run))
    return run


def test_every_reply_has_a_time_and_no_request(networked: RunFolder) -> None:
    transcript = Transcript(networked.path / "transcript", with_content=True)
    timed = "SELECT COUNT(*) FROM messages JOIN arrivals USING (at) WHERE sender {} 'coordinator' AND seconds > 0"
    replies = transcript.rows("SELECT COUNT(*) FROM messages WHERE sender != 'coordinator'")
    assert transcript.rows(timed.format("!=")) == replies != [(0,)]
    assert transcript.rows(timed.format("=")) == [(0,)]
    transcript.close()


def test_the_judge_counts_what_took_part(networked: RunFolder) -> None:
    questions = questions_of(networked, (TRAIN,), 3)
    truth = ground_truth_of(networked, questions.values())
    trained = [serial for serial, asked in questions.items() if asked.question == TRAIN]
    assert len(trained) == 3
    for serial in trained[1:]:  # other questions have the number 0, too
        for name in networked.members:
            assert truth.worked[serial, name] == truth.batches[serial, name].sum()


def test_a_run_without_its_parties_documents_cannot_be_judged(
    networked: RunFolder, tmp_path: Path, documents_file: Path
) -> None:
    documents = networked.documents("north")
    content = documents.read_bytes()
    documents.unlink()
    try:
        with pytest.raises(Mistake, match="the documents of north"):
            audit(write_plan(tmp_path / "given.toml", documents_file), networked.path)
    finally:
        documents.write_bytes(content)
        documents.chmod(0o600)
