"""Parties that help or lie, and coordinators that break the rules: what they open, bring in and tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.collusion import DEVIATION, MISSING, OpenedAnswer, opened_answers
from securetm.auditing.attacks.poisoning import STEERED, chosen, false_counts
from securetm.auditing.parts.gradients import GRADIENT, without
from securetm.auditing.parts.reconstruction_scores import EXACT
from securetm.auditing.plans import read_audit_plan
from securetm.auditing.roles import malicious_parties
from securetm.auditing.runs import Demonstrations
from securetm.auditing.views import AdversaryView, NotTestable, totals
from securetm.contracts import Answer, Block, Domain, Terms
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
from securetm.plans.profiles import claims_of, cohort_of, read_profile
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched
from securetm.threats import read_threat_model

from ..quick_part import quick
from .conftest import PARTIES, Recorded, plan_tables, write_plan
from .tried import settings, tried

# ---- parties that help -----------------------------------------------------------------------------------------------------


BATCH = 25
SURE = 1 - 1e-9  # intervals so wide that honest noise is outside once in 10^9 draws


@pytest.fixture(scope="module")
def masked(recorded: Recorded) -> RunFolder:
    """Two rounds of 125 documents, 25 of each party."""
    return recorded("masked", BATCH, 2, hidden=80)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """Runs with other settings than the fixtures of all tests here have."""
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


@pytest.fixture(scope="module")
def noised(runs: Demonstrations, documents_file: Path) -> RunFolder:
    """Each party adds a share of the noise; some words only one party has."""
    return runs.run("dp-distributed", settings(documents_file, model__hidden=16, training__rounds=2))


# ---- masked sums ---------------------------------------------------------------------------------------------------


def _told(folder: RunFolder, helpers: int) -> tuple[AdversaryView, list[OpenedAnswer]]:
    view = tried(folder, "collusion", {"rounds": 1}, helpers=helpers).view
    return view, list(opened_answers(view))


def test_what_the_keys_leave_of_two_messages_is_what_subtracting_leaves_of_the_total(masked: RunFolder) -> None:
    """So keys open no more than the parties' own answers do: the mask between the two who are left stays on each of them."""
    view, told = _told(masked, 3)
    (total,) = totals(view)
    left = without(total, [one.vector for one in told if one.in_clear])
    honest = [one.vector for one in told if not one.in_clear]
    assert [one.party for one in honest] == list(PARTIES[:2])
    grid = total.round.terms.grid
    both = np.sum([np.rint(one.blocks[GRADIENT] / grid).astype(np.int64) for one in honest], axis=0)
    assert np.array_equal(both.astype(np.int32), np.rint(left.blocks[GRADIENT] / grid))  # in the ring of 32 bits
    for one in honest:  # as wide as the ring, and flat: numbers under a mask
        ring = np.rint(one.blocks[GRADIENT] / grid) / 2.0**32
        assert abs(ring.std() - 1 / np.sqrt(12)) < 0.01


# ---- noise ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("helpers", "shares"), quick([(0, 5), (2, 3), (3, 2), (4, 1)], (2, 3)))
def test_as_much_noise_remains_as_parties_that_do_not_help_added(noised: RunFolder, helpers: int, shares: int) -> None:
    """The accountant counts on three shares: all five parties are in the sum, two may help, and surplus noise was taken off."""
    found = tried(noised, "collusion", {"rounds": 2}, helpers=helpers, confidence=SURE)
    deviation = found.bounded(DEVIATION)
    assert deviation.low <= np.sqrt(shares / 3) <= deviation.high
    assert found.hits(EXACT) == 0


def test_as_many_helpers_as_the_profile_reckons_with_leave_all_the_noise_that_it_promised(noised: RunFolder) -> None:
    missing = tried(noised, "collusion", {"rounds": 2}, helpers=2, confidence=SURE).bounded(MISSING)
    assert missing.low == 0.0
    assert missing.high < 0.3


# ---- one key for all -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ckks", "bfv"])
def test_no_claim_is_made_with_a_helper_where_one_key_serves_all(name: str) -> None:
    profile = read_profile(name)
    made = [claim.colluding for claim in claims_of(profile, cohort_of(profile, PARTIES)) if claim.against == "coordinator"]
    assert made == [0]
    said = " ".join(read_threat_model("lone_coordinator").risks)
    assert "a single party that gives the shared secret key to the coordinator" in said


# ---- two sums --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """Runs with all parties, and without the first."""
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


@pytest.mark.parametrize(("without", "named"), [(0, "none"), (2, "centre, east")])
def test_runs_that_are_not_one_party_apart_are_refused_by_name(
    two_runs: Demonstrations, documents_file: Path, without: int, named: str
) -> None:
    plan = settings(documents_file, model__hidden=64, model__batch=30, training__rounds=2)
    again = two_runs.run("open", plan, without) if without else None
    with pytest.raises(NotTestable, match=named):
        tried(two_runs.run("open", plan), "differencing", {"rounds": 2}, again=again)


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


# ---- a party that lies -----------------------------------------------------------------------------------------------------


COUNTS = Terms((Block("counts", (4, 60)), Block("priors", (5,))), domain=Domain.INTEGER)


def test_a_lie_has_as_many_words_as_the_truth_and_only_the_chosen_ones() -> None:
    honest = np.random.default_rng(1).integers(0, 50, COUNTS.size)
    told = false_counts(honest, COUNTS)
    table, priors = told[:240].reshape(4, 60), told[240:]
    assert abs(int(table.sum()) - int(honest[:240].sum())) <= 12
    assert [set(np.flatnonzero(row)) for row in table] == [set(words) for words in chosen(4, 60)]
    assert (priors == honest[240:]).all()
    assert len(np.unique(chosen(4, 60))) == 12
    assert chosen(4, 60).max() < 60


@pytest.fixture(scope="module")
def plan(documents_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_plan(
        tmp_path_factory.mktemp("lying") / "lying.toml",
        documents_file,
        attack="poisoning",
        threat_model="lying_party",
        adversary="party",
        claim="one party cannot steer the topics",
        measure=STEERED,
        refuted_from=0.5,
        liars=1,
        effort={"rounds": 1},
    )
    text = path.read_text("utf-8").replace('"model.name" = "prodlda"', '"model.name" = "lda"')
    text = text.replace('"model.hidden" = 64\n', "").replace('"model.batch" = 25\n', "")
    path.write_text(text, "utf-8")
    return path


def test_a_lying_party_is_another_run_than_an_honest_one_and_the_same_lie_is_the_same_run(plan: Path, tmp_path: Path) -> None:
    settings = read_audit_plan(plan).trials[0].run
    runs = Demonstrations(tmp_path, Unwatched())
    lies = malicious_parties(1, attack_called("poisoning"))
    folders = [
        runs.run("open", settings),
        runs.run("open", settings, corruption=lies),
        runs.run("open", settings, corruption=lies),
    ]
    assert folders[0].path != folders[1].path == folders[2].path
