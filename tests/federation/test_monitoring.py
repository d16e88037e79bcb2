"""What operators read of a party and of a coordinator: log, metrics, status pages and health, and nothing of documents."""

from __future__ import annotations

import json
import re
import select
import socket
import struct
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from securetm.cli.federation import _served_pages
from securetm.cli.federation import party_facts as facts_of
from securetm.contracts import Answer
from securetm.errors import BadSetting, Failed, Mistake
from securetm.federation.coordinator import pages as local_pages
from securetm.federation.coordinator import status as event_log
from securetm.federation.coordinator.pages import MOST_CLIENTS, LocalPages, PartyMetrics, RunMetrics, metrics_page
from securetm.federation.coordinator.status import AWAY, CONNECTED, EVENTS, OTHERS, TRAINING, EventLog, RunStatus
from securetm.federation.folder import alone_in
from securetm.federation.health import PULSE, check_works, plain_tables, remove_stamp, renew_stamp
from securetm.federation.network.events import LONGEST_FACT
from securetm.federation.party.failure_log import Failure
from securetm.federation.party.status import LOGGED, JoinStatus, log_line
from securetm.federation.refusal_errors import TooFewDocumentsPromised
from securetm.reports.federation import party_status_page, status_pages
from securetm.stages import Unwatched
from securetm.trial.files import make_trial

from .conftest import FIVE, SHARED
from .joined import NAMES, PLAN, Organisations, trained

# ---- a party ---------------------------------------------------------------------------------------------------------------


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
    told = json.dumps([{name: fact for name, fact in one.items() if name != "at"} for one in read])  # a time holds any number
    assert not any(said in told for said in (str(DOCUMENTS), "river"))


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


# ---- a coordinator ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path: Path) -> RunStatus:
    return RunStatus("notes", "lda", "masked", ("north", "south"), EventLog(tmp_path / "log" / "serve.jsonl"))


def served_lines(served: RunStatus) -> list[dict[str, Any]]:
    return [json.loads(line) for line in served.log.path.read_text("utf-8").splitlines()]


def one_round(served: RunStatus, done: int) -> None:
    served.asked({"north": b"12345", "south": b"12345"})
    served.answered("north", 7)
    served.opened(done, Answer(None, survivors=("north",)))
    served.trained(done, 10)


def test_a_snapshot_says_how_the_run_stands(served: RunStatus) -> None:
    served.connected("north")
    served.begins_session(0, 10)
    for done in range(1, 4):
        one_round(served, done)
    facts = served.facts()
    assert (facts["phase"], facts["done"], facts["of"], facts["waves"], facts["survivors"]) == (TRAINING, 3, 10, 3, ("north",))
    assert (facts["bytes_up"], facts["bytes_down"]) == (21, 30)
    assert facts["seconds_per_round"] is not None
    assert facts["seconds_left"] == pytest.approx(7 * facts["seconds_per_round"])
    assert (facts["parties"]["north"]["rounds"], facts["parties"]["south"]["rounds"]) == (3, 0)
    served.lost("north", "the stream ended")
    assert served.facts()["parties"]["north"]["state"] == AWAY
    assert facts["parties"]["north"]["state"] != AWAY  # a snapshot stays as it was
    assert [(line["event"], line.get("bytes_up")) for line in served_lines(served)][2:5] == [("round", 7)] * 3


def test_the_log_has_no_room_for_anything_but_names_and_numbers(served: RunStatus) -> None:
    with pytest.raises(TypeError):
        served.log.write("connected", party="north", word="cough")
    with pytest.raises(TypeError):
        served.log.write("connected", party=[0.1, 0.2])  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        served.log.write("vector")
    served.refused("x" * 1000 + "\n", "y" * 1000)
    (line,) = served_lines(served)
    assert set(line) == {"at", "event", *EVENTS["rejected"]}
    assert (line["party"], len(line["refusal"])) == ("", LONGEST_FACT)  # a name that nobody vouches for is not repeated
    assert served.log.path.stat().st_mode & 0o077 == 0


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


def test_a_full_disk_stops_no_thread_of_the_network(served: RunStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    served.connected("north")
    assert served.facts()["parties"]["north"]["state"] == CONNECTED


def test_metrics_are_of_all_parties_together(served: RunStatus) -> None:
    served.connected("north")
    served.begins_session(0, 10)
    one_round(served, 1)
    served.objected("south", "OutOfTurn")
    kind, content = metrics_page(RunMetrics(served.facts))()
    families = list(text_string_to_metric_families(content.decode()))
    found = {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}
    assert kind.startswith("text/plain")
    assert found["securetm_rounds",] == 1
    assert found["securetm_parties_connected",] == 1
    assert found["securetm_bytes_total", "up"] == 7
    assert found["securetm_refusals_total", "OutOfTurn"] == 1
    assert "north" not in content.decode()  # nothing by party


def test_a_hostile_party_cannot_make_the_facts_grow(served: RunStatus) -> None:
    for number in range(1_000):
        served.objected("south", f"Name{number}")
    refusals = served.facts()["refusals"]
    assert len(refusals) <= 41
    assert refusals[OTHERS] == 960


# ---- the web server --------------------------------------------------------------------------------------------------------


HERE = b"Host: localhost\r\n"


@pytest.fixture
def pages() -> Iterator[LocalPages]:
    with LocalPages({"/": lambda: ("text/plain", b"hello")}, 0) as opened:
        yield opened


def said(pages: LocalPages, request: bytes) -> bytes:
    """All that comes back."""
    with socket.create_connection(("127.0.0.1", pages.port), 30) as client:
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(65_536), b""))


def test_a_page_comes_with_what_keeps_a_browser_from_anything_else(pages: LocalPages) -> None:
    head, _, content = said(pages, b"GET /?x=1 HTTP/1.1\r\n" + HERE + b"\r\n").partition(b"\r\n\r\n")
    assert content == b"hello"
    assert head.startswith(b"HTTP/1.1 200 OK")
    for wanted in (b"default-src 'none'", b"frame-ancestors 'none'", b"no-store", b"nosniff", b"Content-Length: 5"):
        assert wanted in head
    assert said(pages, b"HEAD / HTTP/1.1\r\n" + HERE + b"\r\n").endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST / HTTP/1.1\r\n" + HERE + b"\r\n", b"405"),
        (b"GET /../plan.toml HTTP/1.1\r\n" + HERE + b"\r\n", b"404"),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421"),
        (b"GET / HTTP/1.1\r\n\r\n", b"421"),
        (b"GET / HTTP/1.1\r\n" + HERE + HERE + b"\r\n", b"421"),
        (b"GET /\r\n\r\n", b"400"),
        (b"\xff\xfe\x00 \x80\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1 more\r\n\r\n", b"400"),
    ],
)
def test_everything_else_is_refused(pages: LocalPages, request_: bytes, status: bytes) -> None:
    assert said(pages, request_).split(b" ")[1] == status


def test_slow_and_endless_requests_end(pages: LocalPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_pages, "SECONDS", 0.3)
    assert said(pages, b"GET / HTTP/1.1\r\nA: ") == b""  # never finished
    with suppress(ConnectionError):  # cut off while it was still being sent
        assert said(pages, b"GET / HTTP/1.1\r\nA: " + b"x" * 1_000_000) == b""
    assert said(pages, b"GET / HTTP/1.1\r\n" + HERE + b"\r\n").endswith(b"hello")


def test_more_clients_than_it_takes_are_sent_away_and_it_goes_on(pages: LocalPages) -> None:
    idle = [socket.create_connection(("127.0.0.1", pages.port), 30) for _ in range(4 * MOST_CLIENTS)]
    waiting = set(idle)
    while len(waiting) > MOST_CLIENTS:  # the server closes the others; those that it took may still send their request
        closed, _, _ = select.select(list(waiting), [], [], 30)
        assert closed
        waiting -= set(closed)
    for client in idle:
        client.close()
    for _ in range(1_000):
        try:
            if said(pages, b"GET / HTTP/1.1\r\n" + HERE + b"\r\n").endswith(b"hello"):
                return
        except ConnectionError:
            continue
    raise AssertionError("it never answered again")


def test_a_port_that_is_taken_is_named(pages: LocalPages) -> None:
    with pytest.raises(Mistake, match=f"127.0.0.1:{pages.port}") as refused, LocalPages({}, pages.port):
        pass
    assert "a party with --metrics or --status" in refused.value.advice()


@pytest.mark.parametrize("metrics", ["99999", "127.0.0.1:65536", "1" * 5_000, "-1", "x", "127.0.0.1:"])
def test_what_is_no_port_is_named(metrics: str) -> None:
    served = _served_pages(metrics, 0, lambda: ("text/plain", b""), {})
    with pytest.raises(BadSetting, match="must be PORT or ADDRESS:PORT"), served:
        pass


# ---- the probe of health ---------------------------------------------------------------------------------------------------


SERVED = {"coordinator": {"out": "run"}}


def test_a_coordinator_works_while_it_holds_its_run_and_its_network_moves(tmp_path: Path) -> None:
    plan, run = tmp_path / "plan.toml", tmp_path / "run"
    run.mkdir()
    with pytest.raises(Failed, match="no process has worked on the run"):
        check_works(plan, SERVED)
    with alone_in(run):
        with pytest.raises(Failed, match="about to begin or to end"):
            check_works(plan, SERVED)
        renew_stamp(run)
        assert check_works(plan, SERVED) == f"The coordinator of {plan} works."
        for hangs in (-3_600.0, 3_600.0):  # the second is a stamp of another machine's clock
            (run / PULSE).write_bytes(struct.pack("<d", time.monotonic() + hangs))
            with pytest.raises(Failed, match="has not moved"):
                check_works(plan, SERVED)
        remove_stamp(run)
        with pytest.raises(Failed, match="about to begin or to end"):
            check_works(plan, SERVED)
    with pytest.raises(Failed, match="no process works on the run"):
        check_works(plan, SERVED)


LIGHT = """
import sys
before = set(sys.modules)
from securetm.cli.main import main
sys.argv = ["securetm", "health", sys.argv[1]]
try:
    main()
except SystemExit as end:
    loaded = set(sys.modules) - before
    ours = {name for name in loaded if name.startswith("securetm.")}
    others = loaded - ours - {"securetm", "__future__", "gc", "fcntl", "struct", "_struct"}
    assert end.code or others == set(), others
    largest = {name for name in ours if name.count(".") > 1}
    assert end.code or largest == {"securetm.cli.main", "securetm.federation.health"}, ours
    raise
"""


def test_a_probe_answers_with_next_to_nothing_of_the_standard_library_and_nothing_else(tmp_path: Path) -> None:
    file, data = tmp_path / "PARTY.toml", tmp_path / "home" / "data" / "notes"
    data.mkdir(parents=True)
    file.write_text('name = "north"\nhome = "home"\n[data]\nsource = "notes.jsonl"\nidentity = "notes"\n')
    command = [sys.executable, "-c", LIGHT, str(file)]
    with alone_in(data):
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (said.returncode, said.stdout) == (0, f"The party of {file} works.\n"), said.stderr
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 3
    assert "no process works on data set notes" in said.stderr


PLAIN = (
    'name = "north"',
    "",
    "# a = 1",
    '  home = "home"  # for your account alone',
    "[data]",
    "[policy]  # what is refused",
    'identity = "notes"',
    "rounds = 3",
    'profiles = ["masked", "open"]',
    "[coordinator]",
    'out = "run"',
)
NOT_PLAIN = (
    "name = 'north'",
    'name = "no\\u0072th"',
    'home = """',
    '"""',
    "x = '''",
    "data = {identity = 'x'}",
    'data.identity = "x"',
    "models = [",
    '  "lda",',
    "]",
    "[[data]]",
    '["data"]',
    "[data.more]",
    "[data",
    "[true]",
    "[true], [false]]",
    "name = 3",
    '"name" = "north"',
    "name",
    '= "north"',
    'out = "run", ',
)


@given(st.lists(st.sampled_from([*PLAIN, *NOT_PLAIN]), max_size=8))
def test_plain_files_are_read_as_toml_is_and_others_are_left_to_its_reader(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = plain_tables(text)
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # the command says what is wrong with it
    assert found is not None or not set(lines) <= set(PLAIN)
    assert found is None or looked_for(found) == looked_for(expected)


def looked_for(tables: dict[str, Any]) -> dict[str, Any]:
    """What a probe looks for."""
    strings = {name: tables[name] for name in ("name", "home", "identity", "out") if name in tables}
    return strings | {name: looked_for(value) for name, value in tables.items() if isinstance(value, dict)}


def test_what_init_writes_is_plain(tmp_path: Path) -> None:
    trial = make_trial(tmp_path / "trial", "masked", 2, Unwatched())
    files = (trial.file(trial.parties[0]), trial.path / "coordinator" / "plan.toml")
    assert [plain_tables(file.read_text("utf-8")) is None for file in files] == [False, False]
