"""What a party's operator reads: log, metrics and status page say how the run stands, and nothing of documents."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from securetm.cli.operations.monitoring import facts_of
from securetm.federation.coordinator.pages import PartyMetrics, RunMetrics, metrics_page
from securetm.federation.coordinator.status import EventLog, RunStatus
from securetm.federation.party.failure_log import Failure
from securetm.federation.party.status import LOGGED, JoinStatus, log_line
from securetm.federation.refusal_errors import TooFewDocumentsPromised
from securetm.reports.federation import party_status_page, status_pages

from .conftest import FIVE, SHARED
from .joined import NAMES, PLAN, Organisations, trained

DOCUMENTS = 43  # a number that is not elsewhere in such a run
WORDS = {*SHARED, *(word for subject in FIVE.values() for word in subject)}


def test_no_line_of_the_log_has_words_numbers_of_documents_or_secrets(keys: Path, tmp_path: Path) -> None:
    made = Organisations.of(keys, tmp_path / "all", PLAN, DOCUMENTS)
    _, joined = trained(made, tmp_path / "coordinator")
    assert joined.problems == {}
    lines = [log_line(event, facts) for _, event, facts in joined.told]
    assert {json.loads(line)["event"] for line in lines} == {"answered"}
    text = "\n".join(lines)
    assert not WORDS & set(re.findall(r"[a-z]+", text))
    assert str(DOCUMENTS) not in re.findall(r"\d+", text)
    for name in NAMES:
        secrets = [made.home(name) / "names.key", made.home(name) / "keys" / "identity.pem"]
        assert not any(one.read_bytes().hex() in text for one in secrets)
    assert "notes" not in text  # what the party calls its documents


def status() -> tuple[JoinStatus, list[str]]:
    """A party under way with a refusal, a failure and a lost connection, and its log."""
    lines: list[str] = []
    made = JoinStatus("north", "clinics", 20, lambda event, facts: lines.append(log_line(event, facts)))
    made.connected("coordinator")
    made.answered("train", 3, 4, 5_000)
    made.refuses(TooFewDocumentsPromised(DOCUMENTS, 1_000))
    made.failed(Failure("MemoryError", f"{DOCUMENTS} documents of river", "buy memory"))
    made.lost("coordinator", "UNAVAILABLE: connection reset")
    made.carried("coordinator", 100, 5_000)
    return made, lines


def test_reasons_stay_out_of_the_log() -> None:
    _, lines = status()
    read = [json.loads(line) for line in lines]
    assert [one["event"] for one in read] == ["connected", "answered", "refused", "failed", "lost"]
    assert all(set(one) == {"at", "event", *LOGGED[one["event"]]} for one in read)
    assert read[2]["name"] == "TooFewDocumentsPromised"
    assert not any(said in line for line in lines for said in (str(DOCUMENTS), "river"))


@pytest.fixture
def told(keys: Path, tmp_path: Path) -> tuple[JoinStatus, object]:
    made, _ = status()
    so_far: dict[str, Any] = {"epsilon": 1.5, "of_run": 3.0, "left": 6.5, "all_runs": 1.5, "budget": 8.0}
    made.spent = {"unit": "document", "delta": 1e-6, "unbounded_because": None, "answers": 4, **so_far}
    return made, facts_of(Organisations.of(keys, tmp_path / "all", PLAN).prepared("numpy"), made)


def test_metrics_and_status_say_how_the_run_stands(told: tuple[JoinStatus, object]) -> None:
    _, facts = told
    text = metrics_page(PartyMetrics(facts))()[1].decode()  # type: ignore[arg-type]
    for line in (
        "securetm_party_connected 0.0",
        "securetm_party_rounds 4.0",
        "securetm_party_rounds_planned 20.0",
        "securetm_party_epsilon 1.5",
        "securetm_party_epsilon_left 6.5",
        "securetm_party_epsilon_budget 8.0",
        'securetm_party_answers_total{question="train"} 1.0',
        'securetm_party_refusals_total{name="MemoryError"} 1.0',
        'securetm_party_bytes_total{direction="up"} 5000.0',
    ):
        assert line in text.splitlines()
    assert "securetm_party_certificate_seconds" in text
    pages = status_pages(facts, party_status_page)  # type: ignore[arg-type]
    page = pages["/"]()[1].decode()
    assert "4 of 20 at most" in page
    for shown in (text, page, pages["/status.json"]()[1].decode()):
        assert str(DOCUMENTS) not in re.findall(r"\d+", shown)
        assert "river" not in shown


RULES = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "alerts.yaml"
BOARD = Path(__file__).resolve().parents[2] / "deploy" / "grafana" / "federation.json"


def test_rules_and_board_ask_for_metrics_that_there_are(told: tuple[JoinStatus, object], tmp_path: Path) -> None:
    of_a_party = metrics_page(PartyMetrics(told[1]))()[1].decode()  # type: ignore[arg-type]
    served = RunStatus("clinics", "lda", "masked", NAMES, EventLog(tmp_path / "log"))
    of_a_coordinator = metrics_page(RunMetrics(served.facts))()[1].decode()
    known = set(re.findall(r"^(?:# TYPE )?(securetm_[a-z_]+)", of_a_party + of_a_coordinator, re.MULTILINE))
    asked = set(re.findall(r"\bsecuretm_[a-z_]+", RULES.read_text("utf-8") + BOARD.read_text("utf-8")))
    assert asked <= known
    assert len(asked) >= 12
    json.loads(BOARD.read_text("utf-8"))
