"""No byte on the wire shows a word of the documents, and nor does what the coordinator decrypts of the parties under `masked`.

The same detector finds the words where nothing hides them: in what the parties send under `open` to agree on words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from securetm.corpus.corpus import Corpus
from securetm.credentials.roster import read_roster
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import make_party, train
from securetm.federation.transcript import Transcript
from securetm.stages import Unwatched
from securetm.trial.files import TrialFolder, free_port
from securetm.trial.processes import MemberProcesses

from ..cli.conftest import securetm
from ..federation.conftest import small_plan
from .meeting import FIVE, PATIENCE, Meeting, Parties
from .relay import Relay
from .wire_words import Detector, forms_of

pytestmark = pytest.mark.own_draws  # threads draw at once, and the stream of a test serves one of them
LONG = {  # each party has words of its own, long enough to be looked for
    "centre": "jurisprudence magistrature plaintiffs testimonies".split(),
    "east": "lighthouses archipelago breakwaters fisherwoman".split(),
    "north": "tributaries embankments overflowing meandering".split(),
    "south": "constitutional prosecution adjudicated injunctions".split(),
    "west": "backpropagation regularised convolution optimisation".split(),
}
WORDS = tuple(word for words in LONG.values() for word in words)


@pytest.fixture(scope="module")
def wordy(five: Mapping[str, Corpus]) -> dict[str, Corpus]:
    """Documents with long words in them."""
    more = {name: Corpus.from_strings([" ".join(words)] * 12, name=f"{name} too") for name, words in LONG.items()}
    return {name: Corpus.concat([corpus, more[name]]) for name, corpus in five.items()}


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector(WORDS)


def test_the_detector_finds_every_form_of_a_word(detector: Detector) -> None:
    around = bytes(range(7, 60))
    for name, form in forms_of("backpropagation"):
        assert ("backpropagation", name) in detector.found(around + form + around)
    assert detector.found(around * 1_000) == set()


def over_a_relay(run: RunFolder, keyring: Meeting) -> Relay:
    """Trains over connections that pass a relay, and returns the relay with what it saw."""
    meeting, behind = keyring.at_another_port(), free_port()
    port = int(meeting.roster.address.rpartition(":")[2])
    hub = meeting.hub()
    hub.listen = f"127.0.0.1:{behind}"
    hub.start()
    with Relay(behind, port) as relay, Parties() as parties:
        for name in FIVE:
            party = make_party(run, name)
            parties.callback(party.close)
            parties.run(meeting.dialer(name, _most(party)), party.handle)
        assert hub.wait_for(FIVE, PATIENCE) == frozenset(FIVE)
        train(run, Unwatched(), parties=hub.parties(PATIENCE))
        hub.close(finished=True)
    assert parties.ended == dict.fromkeys(FIVE, True)
    return relay


def _most(party: object) -> Callable[[], int]:
    return lambda: party.most_bytes  # type: ignore[attr-defined,no-any-return]


def decrypted(run: Path, sent_by_parties: bool) -> bytes:
    """The messages as the coordinator has them after TLS, one after the other."""
    transcript = Transcript(run / "transcript")
    wanted = "sender != 'coordinator'" if sent_by_parties else "receiver != 'coordinator'"
    found = transcript.rows(f"SELECT content FROM messages WHERE {wanted} ORDER BY at")
    transcript.close()
    assert found
    return b"".join(content for (content,) in found)


@pytest.fixture(scope="module")
def masked(wordy: dict[str, Corpus], keyring: Meeting, tmp_path_factory: pytest.TempPathFactory) -> tuple[Relay, RunFolder]:
    plan = small_plan(profile="masked", model__batch=25, training__rounds=3)
    run = begin(tmp_path_factory.mktemp("masked") / "run", plan, wordy, with_content=True)
    return over_a_relay(run, keyring), run


@pytest.fixture(scope="module")
def union(wordy: dict[str, Corpus], keyring: Meeting, tmp_path_factory: pytest.TempPathFactory) -> tuple[Relay, RunFolder]:
    plan = small_plan(profile="open", training__rounds=3, vocabulary__source="union")
    run = begin(tmp_path_factory.mktemp("union") / "run", plan, wordy, with_content=True)
    return over_a_relay(run, keyring), run


@pytest.fixture(scope="module")
def blind(wordy: dict[str, Corpus], keyring: Meeting, tmp_path_factory: pytest.TempPathFactory) -> tuple[Relay, RunFolder]:
    """A run whose coordinator sees columns without names. Each long word is at two parties, since others get no column."""
    names = list(wordy)
    after = {name: Corpus.from_strings([" ".join(LONG[names[n - 1]])] * 12, name="more") for n, name in enumerate(names)}
    documents = {name: Corpus.concat([wordy[name], after[name]], name=name) for name in names}
    plan = small_plan(profile="masked", model__batch=25, training__rounds=2, vocabulary__source="blind")
    run = begin(tmp_path_factory.mktemp("blind") / "run", plan, documents, with_content=True)
    return over_a_relay(run, keyring), run


def test_the_model_is_the_simulations_bit_for_bit(
    masked: tuple[Relay, RunFolder], wordy: dict[str, Corpus], tmp_path: Path
) -> None:
    alone = begin(tmp_path / "alone", masked[1].agreement.plan, wordy)
    train(alone, Unwatched())
    assert masked[1].model.read_bytes() == alone.model.read_bytes()


def test_no_word_is_on_the_wire(masked: tuple[Relay, RunFolder], union: tuple[Relay, RunFolder], detector: Detector) -> None:
    for relay, _ in (masked, union):
        for way, passed in relay.passed.items():
            assert len(passed) > 10_000, way
            assert detector.found(bytes(passed)) == set(), way


def test_the_detector_finds_the_words_that_parties_send_in_the_clear(
    union: tuple[Relay, RunFolder], detector: Detector
) -> None:
    found = detector.found(decrypted(union[1].path, sent_by_parties=True))
    assert {word for word, form in found if form == "raw"} == set(WORDS)


def test_what_the_coordinator_decrypts_of_masked_parties_has_no_word(
    masked: tuple[Relay, RunFolder], detector: Detector
) -> None:
    replies = decrypted(masked[1].path, sent_by_parties=True)
    assert len(replies) > 10_000
    assert detector.found(replies) == set()
    told = detector.found(decrypted(masked[1].path, sent_by_parties=False))  # the list that all parties agreed on
    assert {word for word, _ in told} == set(WORDS)


@pytest.mark.slow
def test_a_coordinator_that_trains_over_hidden_words_decrypts_none_in_either_direction(
    blind: tuple[Relay, RunFolder], detector: Detector
) -> None:
    relay, run = blind
    kept = [path.read_bytes() for path in run.coordinator.rglob("*") if path.is_file()]
    seen = [decrypted(run.path, sent_by_parties=by_parties) for by_parties in (True, False)]
    for passed in (*map(bytes, relay.passed.values()), *seen, b"".join(kept)):
        assert len(passed) > 10_000
        assert detector.found(passed) == set()
    models = {(run.party(name) / "release" / "model.safetensors").read_bytes() for name in run.members}
    assert len(models) == 1
    for name in run.members:  # while every party knows the words
        assert set(WORDS) <= set((run.party(name) / "vocabulary.txt").read_text("utf-8").split("\n"))


# ---- six processes -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_word_is_on_the_wire_between_processes(tmp_path: Path) -> None:
    behind, said = free_port(), securetm("init", str(tmp_path / "trial"), "--rounds", "2", "--json")
    assert said.code == 0, said.err
    trial = TrialFolder(Path(said.json["folder"]), tuple(said.json["parties"]))
    front = int(read_roster(trial.coordinator / "roster.toml").address.rpartition(":")[2])
    documents = [line for name in trial.parties for line in (trial.party(name) / "documents.jsonl").read_text().splitlines()]
    words = sorted({word for line in documents for word in json.loads(line)["text"].split() if word.isalpha()}, key=len)
    detector = Detector(words[-100:])
    assert len(detector.words) > 50
    (tmp_path / "logs").mkdir()
    listen = ("--set", f"coordinator.listen=127.0.0.1:{behind}", "--record")
    with Relay(behind, front) as relay, MemberProcesses(tmp_path / "logs") as processes:
        for number, command in enumerate(trial.commands):
            processes.start(f"member {number}", (*command, *listen) if number == 0 else command)
        for one in processes.members:
            assert one.running.wait(PATIENCE * 5) == 0, one.log.read_text()
    for passed in relay.passed.values():
        assert len(passed) > 10_000
        assert detector.found(bytes(passed)) == set()
    assert detector.found(decrypted(trial.run, sent_by_parties=True)) == set()
