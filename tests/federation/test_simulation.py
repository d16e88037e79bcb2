"""Whole runs in one process: in workers or not, with public words, how long they train, and what they say that they took."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Failed
from securetm.federation.coordinator.training import settled
from securetm.federation.folder import begin, reopen
from securetm.federation.simulation.simulation import Workers, execute
from securetm.federation.transcript import Transcript
from securetm.federation.wire import wire
from securetm.federation.wire.wire import MOST_BYTES
from securetm.plans.recommend import MOST_ROUNDS_OF_EPOCHS, plan_from_tables
from securetm.plans.schema import Plan, TrainingChoice
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched

from .conftest import SHARED, SUBJECTS, StopsAfter, small_plan
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


# ---- rounds that follow the documents --------------------------------------------------------------------------------------


DOCUMENTS = 300  # of the five parties
ROUNDS = 9  # 3 epochs over the 240 documents that are trained on, 80 in a round


def plan_of(**more: Any) -> Plan:
    """Three epochs, of batches of 16."""
    return small_plan(training={"epochs": 3, "held_out": 0.2, **more.pop("training", {})}, **more)


def trained(five: Mapping[str, Corpus], place: Path, plan: Plan) -> Mapping[str, Any]:
    return execute(begin(place, plan, five), Unwatched(), comparison=False)


@pytest.mark.parametrize("profile", ["masked"])
def test_rounds_follow_the_documents_of_all_parties(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    assert sum(map(len, five.values())) == DOCUMENTS
    result = trained(five, tmp_path / "run", plan_of(profile=profile, model__batch=25 if profile == "masked" else 16))
    assert (result["rounds"], result["stopped"]) == (6 if profile == "masked" else ROUNDS, "epochs")


HIDDEN: dict[str, dict[str, Any]] = {
    "a budget": {"profile": "dp-distributed", "model": {"name": "lda-vi"}},
    "a public list": {"profile": "open", "model": {"name": "prodlda"}},
    "only the parties open": {"profile": "bfv", "model": {"name": "prodlda"}},
}


@pytest.mark.parametrize("case", HIDDEN)
def test_where_nobody_learns_the_number_of_documents_rounds_are_fixed_before(case: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("river\ncourt\n", "utf-8")
    listed = {} if case == "a budget" else {"vocabulary": {"source": "file", "file": str(words)}}
    tables = {**HIDDEN[case], **listed}
    fixed = plan_from_tables(tables, "a test").training
    assert (fixed.epochs, fixed.rounds < MOST_ROUNDS_OF_EPOCHS) == (0.0, True)
    with pytest.raises(BadSetting, match="needs the number of documents"):
        plan_from_tables({**tables, "training": {"epochs": 3}}, "a test")


# ---- when training ends ----------------------------------------------------------------------------------------------------


HELD_OUT = TrainingChoice(stop="held_out", patience=2, tolerance=0.1)


@pytest.mark.parametrize(
    ("history", "ended"),
    [
        ([], False),
        ([100.0], False),
        ([100.0, 100.0], False),  # too short to judge
        ([100.0, 100.0, 100.0], True),
        ([100.0, 99.0, 95.0], True),  # less than a tenth better
        ([100.0, 99.0, 89.0], False),
        ([100.0, 89.0, 99.0], False),  # one of the last two was better
        ([50.0, 60.0, 70.0], True),
        ([70.0, 60.0, 50.0, 49.0, 48.0], True),
        ([0.0, 0.0, 0.0], True),  # nothing moves any more
    ],
)
def test_settled(history: list[float], ended: bool) -> None:
    assert settled(HELD_OUT, history) is ended


@pytest.mark.parametrize("stop", ["weights", "held_out"])
def test_a_run_ends_when_its_measure_has_settled(stop: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(
        training__stop=stop, training__rounds=200, training__every=2, training__patience=1, training__tolerance=0.99
    )
    result = execute(begin(tmp_path / "run", plan, corpora), Unwatched(), comparison=False)
    assert result["rounds"] == 4  # the first two measures differ by less than 99 per cent


# ---- what a run took -------------------------------------------------------------------------------------------------------


LDA = {"name": "lda", "n_topics": 3, "sweeps": 1}


def kept(folder: Path) -> tuple[tuple[int, int], float]:
    """Bytes from and to the parties, and seconds, that are on disk."""
    transcript = Transcript(folder / "transcript")
    found = transcript.traffic(), transcript.seconds()
    transcript.close()
    return found


@pytest.mark.slow
def test_of_a_run_in_two_parts_bytes_and_seconds_are_those_of_both(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(model=LDA)
    unbroken = execute(begin(tmp_path / "unbroken", plan, corpora), Unwatched(), comparison=False)
    folder = begin(tmp_path / "broken", plan, corpora)
    with pytest.raises(Failed, match=r"the run was interrupted after round .*nothing is lost") as stop:
        execute(folder, StopsAfter(4), comparison=False)
    assert "securetm run --resume" in stop.value.advice()
    (up, _), seconds = kept(folder.path)
    assert up > 0
    assert seconds > 0
    result = execute(reopen(folder.path), Unwatched(), comparison=False)
    again = kept(folder.path)
    assert (result["bytes_up"], result["bytes_down"]) == again[0]
    assert seconds - 0.005 <= result["seconds"] <= again[1] + 0.005  # it is rounded
    # Only the first checkpoint was kept, so all four rounds were asked again, and what was sent for them counts twice.
    assert result["bytes_up"] > unbroken["bytes_up"] + 3 * up // 5
    assert result["bytes_down"] > unbroken["bytes_down"]
    assert result["rounds"] == unbroken["rounds"]
    assert result["topics"] == unbroken["topics"]


def test_dropping_what_is_asked_again_keeps_its_bytes(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    for serial, size in ((1, 10), (2, 20), (3, 40)):
        transcript.record(serial, "request", "coordinator", "north", bytes(size))
        transcript.record(serial, "clear", "north", "coordinator", bytes(2 * size))
    for _ in range(2):  # what was dropped once is not dropped again
        transcript.forget_after(1)
        assert transcript.traffic() == (140, 70)
    assert transcript.rows("SELECT SUM(bytes) FROM messages") == [(30,)]
    transcript.close()
    assert os.listdir(tmp_path) == ["messages.sqlite"]
