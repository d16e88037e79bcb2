"""Who listens to connections, and audits of runs over a real network: what lengths and times tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from securetm.auditing.attack import Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.traffic import ANSWERS
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.roles import RECORD, CountWords, over_network, with_mechanism
from securetm.auditing.runner import audit
from securetm.auditing.views import SIZES, AdversaryView, NotTestable
from securetm.corpus.corpus import Corpus
from securetm.errors import Mistake
from securetm.federation.folder import RunFolder, begin
from securetm.federation.questions import TRAIN
from securetm.federation.simulation.simulation import make_party, train
from securetm.federation.store import write_json
from securetm.federation.transcript import Transcript
from securetm.stages import Unwatched

from ..federation.clocked import Overheard
from ..federation.conftest import corpora, five, small_plan  # noqa: F401 - fixtures
from ..federation.private import private_plan
from .conftest import PARTIES, Recorded, adversary, texts, write_plan

LISTENER = adversary("network observer", "network_observer")
TRAFFIC = attack_called("traffic")


@pytest.fixture(scope="module")
def unequal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parties with more and fewer documents, so that they have more and fewer words."""
    path = tmp_path_factory.mktemp("unequal") / "documents.csv"
    rows = [f"{text},{name}" for n, name in enumerate(PARTIES) for text in texts(20 * 2**n + 20, n, words=700)]
    path.write_text("text,party\n" + "\n".join(rows) + "\n", "utf-8")
    return path


def listened(recorded: Recorded, profile: str) -> AdversaryView:
    return view_of(recorded(profile, 25), LISTENER, TRAFFIC, 3)


def test_a_message_on_this_channel_is_its_length_and_nothing_else(recorded: Recorded) -> None:
    view = listened(recorded, "open")
    assert set(view.seen) == {SIZES}
    assert view.words is None
    assert view.weights is None
    sizes = view.messages(SIZES)
    assert len(sizes) >= 2 * len(PARTIES) * len({message.serial for message in sizes})
    assert all(message.content.isdigit() and int(message.content) > 30 for message in sizes)
    assert all(message.sender != message.receiver for message in sizes)  # an opened total passes between no machines


# ---- times -----------------------------------------------------------------------------------------------------------


ANSWER_TIMES = attack_called("answer_times")
TIMED = 22


@dataclass
class ByClock:
    """Parties that are asked one after the other; the time of each reply is that of its party's own clock."""

    parties: Mapping[str, Overheard]
    arrivals: dict[str, float] = field(default_factory=dict)

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes]]:
        del most
        for name, message in requests.items():
            begun = self.parties[name].hands.at
            reply = self.parties[name].handle(message)
            self.arrivals[name] = self.parties[name].hands.at - begun
            yield name, reply

    def present(self) -> frozenset[str]:
        return frozenset(self.parties)

    def close(self) -> None:
        for party in self.parties.values():
            party.close()


def timed(corpora: Mapping[str, Corpus], folder: Path, *, waiting: bool) -> RunFolder:  # noqa: F811
    """A run with a budget whose transcript has times; without waiting, answers leave as soon as they are there."""
    folder.mkdir()
    run = begin(folder / "run", private_plan(folder, "dp-distributed", training__rounds=TIMED), corpora, with_content=True)
    counts = {name: CountWords() for name in run.members}
    parties = ByClock(
        {name: Overheard(with_mechanism(make_party(run, name), counts[name]), waiting=waiting) for name in run.members}
    )
    train(run, Unwatched(), parties=parties, arrivals=parties.arrivals)
    write_json(run.path / RECORD, {name: count.words for name, count in counts.items()})
    return run


def by_times(run: RunFolder, *, chance: bool = False) -> Score:
    view = view_of(run, LISTENER, ANSWER_TIMES, TIMED)
    truth = ground_truth_of(run, questions_of(run, (TRAIN,), TIMED).values())
    return ANSWER_TIMES.judge(ANSWER_TIMES.attack(of_chance(view, 1) if chance else view, {}), truth)


def hit_share(score: Score) -> float:
    found = score.measures[ANSWERS]
    assert isinstance(found, Proportion)
    assert found.of >= 30
    return found.hits / found.of


@pytest.mark.slow
def test_without_an_interval_times_tell_how_much_was_sampled(five: Mapping[str, Corpus], tmp_path: Path) -> None:  # noqa: F811
    run = timed(five, tmp_path / "at once", waiting=False)
    assert hit_share(by_times(run)) > 0.8  # the clock counts documents, and the judge their words
    assert 0.2 < hit_share(by_times(run, chance=True)) < 0.8
    (run.path / RECORD).unlink()
    with pytest.raises(NotTestable, match="nobody knows"):  # without a record of the words
        by_times(run)


@pytest.mark.slow
def test_with_a_beat_times_are_no_better_than_chance(five: Mapping[str, Corpus], tmp_path: Path) -> None:  # noqa: F811
    run = timed(five, tmp_path / "at an interval", waiting=True)
    assert 0.2 < hit_share(by_times(run)) < 0.8


# ---- runs over a network ---------------------------------------------------------------------------------------------------


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
