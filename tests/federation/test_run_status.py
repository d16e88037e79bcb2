"""What is told of a served run: public facts only, in the log, in the metrics and in a snapshot."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from securetm.contracts import Answer
from securetm.federation.coordinator import status as event_log
from securetm.federation.coordinator.pages import RunMetrics, metrics_page
from securetm.federation.coordinator.status import AWAY, CONNECTED, EVENTS, OTHERS, TRAINING, EventLog, RunStatus
from securetm.federation.network.events import LONGEST_FACT


@pytest.fixture
def status(tmp_path: Path) -> RunStatus:
    return RunStatus("notes", "lda", "masked", ("north", "south"), EventLog(tmp_path / "log" / "serve.jsonl"))


def lines(status: RunStatus) -> list[dict[str, Any]]:
    return [json.loads(line) for line in status.log.path.read_text("utf-8").splitlines()]


def one_round(status: RunStatus, done: int) -> None:
    status.asked({"north": b"12345", "south": b"12345"})
    status.answered("north", 7)
    status.opened(done, Answer(None, survivors=("north",)))
    status.trained(done, 10)


def test_a_snapshot_says_how_the_run_stands(status: RunStatus) -> None:
    status.connected("north")
    status.begins_session(0, 10)
    for done in range(1, 4):
        one_round(status, done)
    facts = status.facts()
    assert (facts["phase"], facts["done"], facts["of"], facts["waves"], facts["survivors"]) == (TRAINING, 3, 10, 3, ("north",))
    assert (facts["bytes_up"], facts["bytes_down"]) == (21, 30)
    assert facts["seconds_per_round"] is not None
    assert facts["seconds_left"] == pytest.approx(7 * facts["seconds_per_round"])
    assert (facts["parties"]["north"]["rounds"], facts["parties"]["south"]["rounds"]) == (3, 0)
    status.lost("north", "the stream ended")
    assert status.facts()["parties"]["north"]["state"] == AWAY
    assert facts["parties"]["north"]["state"] != AWAY  # a snapshot stays as it was
    assert [(line["event"], line.get("bytes_up")) for line in lines(status)][2:5] == [("round", 7)] * 3


def test_the_log_has_no_room_for_anything_but_names_and_numbers(status: RunStatus) -> None:
    with pytest.raises(TypeError):
        status.log.write("connected", party="north", word="cough")
    with pytest.raises(TypeError):
        status.log.write("connected", party=[0.1, 0.2])  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        status.log.write("vector")
    status.refused("x" * 1000 + "\n", "y" * 1000)
    (line,) = lines(status)
    assert set(line) == {"at", "event", *EVENTS["rejected"]}
    assert (line["party"], len(line["refusal"])) == ("", LONGEST_FACT)  # a name that nobody vouches for is not repeated
    assert status.log.path.stat().st_mode & 0o077 == 0


def test_the_log_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "_FULL", 2_000)
    beside = StringIO()
    log = EventLog(tmp_path / "serve.jsonl", beside)
    for _ in range(200):
        log.write("connected", party="north")
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 2
    assert sum(path.stat().st_size for path in kept) <= 4_000
    assert len(beside.getvalue().splitlines()) == 200


def test_a_full_disk_stops_no_thread_of_the_network(status: RunStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    status.connected("north")
    assert status.facts()["parties"]["north"]["state"] == CONNECTED


def test_metrics_are_of_all_parties_together(status: RunStatus) -> None:
    status.connected("north")
    status.begins_session(0, 10)
    one_round(status, 1)
    status.objected("south", "OutOfTurn")
    kind, content = metrics_page(RunMetrics(status.facts))()
    families = list(text_string_to_metric_families(content.decode()))
    found = {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}
    assert kind.startswith("text/plain")
    assert found["securetm_rounds",] == 1
    assert found["securetm_parties_connected",] == 1
    assert found["securetm_bytes_total", "up"] == 7
    assert found["securetm_refusals_total", "OutOfTurn"] == 1
    assert "north" not in content.decode()  # nothing by party


def test_a_hostile_party_cannot_make_the_facts_grow(status: RunStatus) -> None:
    for number in range(1_000):
        status.objected("south", f"Name{number}")
    refusals = status.facts()["refusals"]
    assert len(refusals) <= 41
    assert refusals[OTHERS] == 960
