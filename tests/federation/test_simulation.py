"""Whole runs: in workers or not, and with words that are public."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from securetm.corpus.corpus import Corpus
from securetm.errors import Failed
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import Workers, execute
from securetm.federation.transcript import Transcript
from securetm.federation.wire import wire
from securetm.federation.wire.wire import MOST_BYTES
from securetm.plans.schema import Plan
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched

from .conftest import SHARED, SUBJECTS, small_plan
from .plain_workers import dies_at_the_second_message, echo


def ran(folder: Path, plan: Plan, corpora: Mapping[str, Corpus], **how: Any) -> dict[str, Any]:
    return execute(begin(folder, plan, corpora), Unwatched(), **how)


# ---- workers -------------------------------------------------------------------------------------------------------


def test_long_messages_do_not_wait_for_each_other() -> None:
    """Both ways at once they fill the pipe: whoever sends without listening waits for ever."""
    workers = Workers(echo, {name: (name,) for name in "abcd"}, 2)
    said = {name: name.encode() * 4_000_000 for name in "abcd"}
    heard: list[Mapping[str, bytes]] = []
    asking = threading.Thread(target=lambda: heard.append(dict(workers.ask(said, MOST_BYTES))), daemon=True)
    asking.start()
    asking.join(timeout=600)
    assert heard == [said]
    workers.close()


@pytest.mark.slow
def test_two_workers_end_where_one_process_does(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(model={"name": "lda", "n_topics": 3}, training__rounds=4)  # without torch, workers start sooner
    here, there = (
        ran(tmp_path / "here", plan, corpora, comparison=False),
        ran(tmp_path / "there", plan, corpora, workers=2, comparison=False),
    )
    for what in ("topics", "rounds", "bytes_up", "bytes_down"):
        assert here[what] == there[what], what
    for measure, value in here["quality"].items():
        assert there["quality"][measure] == pytest.approx(value, rel=1e-5)


def test_a_worker_that_dies_is_named_with_its_parties() -> None:
    workers = Workers(dies_at_the_second_message, {name: (name,) for name in ("north", "south", "west")}, 2)
    try:
        assert dict(workers.ask({"west": b"a", "south": b"b"}, MOST_BYTES)) == {"west": b"awest", "south": b"bsouth"}
        with pytest.raises(Failed, match="north, west"):
            list(workers.ask({"west": b"again"}, MOST_BYTES))
        for _ in range(2):  # and it stays dead, whether that is noticed when writing or when reading
            with pytest.raises(Failed, match="north, west") as refusal:
                list(workers.ask({"north": b"more"}, MOST_BYTES))
        assert "--resume" in refusal.value.advice()
    finally:
        workers.close()


# ---- vocabularies --------------------------------------------------------------------------------------------------


def requests(path: Path) -> Iterator[wire.Body]:
    """What the coordinator sent, from the transcript."""
    transcript = Transcript(path / "transcript")
    for (content,) in transcript.rows("SELECT content FROM messages WHERE channel = 'request' ORDER BY at"):
        yield wire.unpack_request(content)[1]
    transcript.close()


def asked(path: Path) -> list[str]:
    return [body.question for body in requests(path) if isinstance(body, wire.Ask)]


def test_with_a_public_file_no_partys_words_travel(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    public = sorted([*SHARED, *SUBJECTS["north"], "neverused"])
    (tmp_path / "words.txt").write_text("\n".join(reversed(public)) + "\n\n", encoding="utf-8")
    plan = small_plan(
        vocabulary__source="file",
        origins__vocabulary="made up",
        vocabulary__file=str(tmp_path / "words.txt"),
        training__rounds=2,
    )
    execute(begin(tmp_path / "run", plan, corpora, with_content=True), Unwatched(), comparison=False)
    assert FinishedRun.open(tmp_path / "run").vocabulary == tuple(public)
    assert set(asked(tmp_path / "run")) == {"train", "coherence", "held_out"}
    transcript = Transcript(tmp_path / "run" / "transcript")
    everything = b"".join(content for (content,) in transcript.rows("SELECT content FROM messages"))
    transcript.close()
    assert b"river" in everything  # the coordinator sends the public words
    own = [word for word in SUBJECTS["south"] + SUBJECTS["west"] if len(word) > 4 and word != "weight"]  # as in "weights"
    assert not any(word.encode() in everything for word in own)
