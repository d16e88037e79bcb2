"""Two sums that one party tells apart: between two runs, and where a coordinator breaks the rules in one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.runs import Demonstrations
from securetm.auditing.views import NotTestable
from securetm.contracts import Answer
from securetm.entropy import OperatingSystem
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.coordinator.training import start
from securetm.federation.coordinator.words import new_words, tell_words
from securetm.federation.folder import RunFolder, begin
from securetm.federation.questions import COHERENCE, JOINT, TRAIN
from securetm.federation.simulation.simulation import InProcess, make_party
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import RecordedParties, Transcript, Watch
from securetm.federation.wire import wire
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched

from .conftest import plan_tables
from .tried import settings, tried


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """Runs with all parties, and without the first."""
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


@pytest.mark.parametrize(("without", "named"), [(0, "none"), (2, "centre, east")])
def test_runs_that_are_not_one_party_apart_are_refused_by_name(
    runs: Demonstrations, documents_file: Path, without: int, named: str
) -> None:
    plan = settings(documents_file, model__hidden=64, model__batch=30, training__rounds=2)
    again = runs.run("open", plan, without) if without else None
    with pytest.raises(NotTestable, match=named):
        tried(runs.run("open", plan), "differencing", {"rounds": 2}, again=again)


# ---- in one run, by a coordinator that breaks the rules ------------------------------------------------------------


class _AsksFewer(Coordinator):
    """It puts a question to all parties, and then the same question, about the same state, to all but the first."""

    def agree(self) -> tuple[str, ...]:
        """As every coordinator does."""
        self.tell(wire.Invite(self.agreement.digest, self.agreement.profile.digest, self.members, 0))
        words = new_words(self)
        tell_words(self, words)
        return words

    def twice(self, question: str, state: dict[str, np.ndarray], *, same_round: bool = True) -> tuple[Answer, Answer]:
        """Both answers: to one number, which decides which documents take part, or to one and the next."""
        everybody, number = self.members, self.numbers.get(question, 0)
        first = self.ask(question, state)
        self.numbers[question], self.members = number + (not same_round), everybody[1:]
        try:
            return first, self.ask(question, state)
        finally:
            self.members = everybody


@pytest.fixture
def liar(tmp_path_factory: pytest.TempPathFactory, parties: dict[str, object]) -> Iterator[tuple[RunFolder, _AsksFewer]]:
    """Real parties under the profile that is made for an active coordinator."""
    model = {"name": "prodlda", "n_topics": 5, "hidden": 64, "batch": 25}
    plan = plan_from_tables(plan_tables("masked_strict", model, 3), "a test")
    folder = begin(tmp_path_factory.mktemp("lied") / "run", plan, parties, with_content=True)  # type: ignore[arg-type]
    eyes, profile = Watch(), folder.agreement.profile
    transcript = Transcript(folder.path / "transcript", with_content=True)
    at_work = RecordedParties(
        InProcess({n: make_party(folder, n) for n in folder.members}), transcript, profile.aggregation.channel
    )
    store = CoordinatorStore(folder.coordinator)
    yield folder, _AsksFewer(folder.members, folder.agreement, at_work, store, OperatingSystem(), eyes, folder.keys)
    at_work.close()
    transcript.close()
    store.close()


def test_one_round_is_answered_to_one_cohort(liar: tuple[RunFolder, _AsksFewer]) -> None:
    """The same batch from the same weights, asked of all and then of all but one: the difference would be that one's answer."""
    _, coordinator = liar
    state = start(coordinator, coordinator.agree())
    with pytest.raises(PartyRefused, match="AnotherSample"):  # where the coordinator may lie, of all members or of none
        coordinator.twice(TRAIN, dict(state))


def test_counts_of_words_together_are_told_once(liar: tuple[RunFolder, _AsksFewer]) -> None:
    _, coordinator = liar
    if not coordinator.questions.vocabulary:
        coordinator.agree()
    top = {"top": np.arange(10, dtype=np.int64)[None, :]}
    coordinator.ask(COHERENCE, top)
    with pytest.raises(PartyRefused, match="AskedTooOften"):
        coordinator.twice(COHERENCE, top, same_round=False)


def test_within_one_run_the_table_of_all_words_is_refused_to_fewer(liar: tuple[RunFolder, _AsksFewer]) -> None:
    """Of questions about the corpus alone a party answers each once: what a new run gets round, one run does not."""
    _, coordinator = liar
    if not coordinator.questions.vocabulary:
        coordinator.agree()
    with pytest.raises(PartyRefused, match="AlreadyAnswered"):
        coordinator.twice(JOINT, {})
