"""A run whose members change between two sessions: one joins, one leaves. The others keep their stores and go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from securetm.accounting.ledger import Ledger
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.coordinator import training
from securetm.federation.coordinator.coordinator import Coordinator, Trained
from securetm.federation.party.party import Party
from securetm.federation.party_store import PartyStore
from securetm.federation.simulation.simulation import InProcess
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import Watch
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.sessions.identities import public_identity

from ..quick_part import quick
from .conftest import FIVE, small_plan, texts


class Stopped(Exception):
    """The coordinator's end, after a round that it kept."""


@dataclass
class Ending(Watch):
    """Ends the coordinator after so many training rounds."""

    after: int = 10**9
    done: list[int] = field(default_factory=list)

    def trained(self, done: int, total: int) -> None:
        self.done.append(done)
        if done == self.after:
            raise Stopped()


def session(folder: Path, plan: Plan, corpora: Mapping[str, Corpus], members: Sequence[str], watch: Ending) -> Trained:
    """One start of all roles over the stores that they had before."""
    agreement, stores = agree(plan), {name: PartyStore(folder / name, synced=False) for name in members}
    keys = {name: public_identity(store, OperatingSystem()) for name, store in stores.items()}
    parties = {
        name: Party(name, tuple(members), agreement, corpora[name], store, OperatingSystem(), keys, ledger)
        for name, store in stores.items()
        for ledger in [Ledger.open(folder / f"{name}.ledger", name, None)]
    }
    store = CoordinatorStore(folder / "coordinator")
    reached = InProcess(parties)
    try:
        return Coordinator(tuple(members), agreement, reached, store, OperatingSystem(), watch, keys).run()
    finally:
        reached.close()
        store.close()


@pytest.mark.parametrize(
    ("profile", "model"),
    quick([("open", {}), ("masked", {"name": "lda", "n_topics": 3})], ("masked", {"name": "lda", "n_topics": 3})),
)
def test_a_run_goes_on_with_one_party_more_and_then_with_one_less(
    profile: str, model: dict[str, object], five: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "SECONDS_BETWEEN_KEEPS", 0.0)
    plan = small_plan(profile=profile, training__rounds=9, **({"model": model} if model else {"model__batch": 40}))
    corpora = {**five, "newcomer": Corpus.from_strings(texts(FIVE["west"], 60, 3), name="newcomer")}
    with pytest.raises(Stopped):
        session(tmp_path, plan, corpora, tuple(five), Ending(3))
    before = CoordinatorStore(tmp_path / "coordinator")
    words = (tmp_path / "coordinator" / "vocabulary.txt").read_bytes()
    before.close()
    with pytest.raises(Stopped):
        session(tmp_path, plan, corpora, tuple(corpora), Ending(6))
    watch = Ending()
    trained = session(tmp_path, plan, corpora, tuple(name for name in corpora if name != "south"), watch)
    assert trained.rounds == 9
    assert watch.done[0] in (6, 7)  # the round of the last checkpoint, or the next
    assert (tmp_path / "coordinator" / "vocabulary.txt").read_bytes() == words
    assert all(np.isfinite(array).all() for array in trained.state.values())
    store = CoordinatorStore(tmp_path / "coordinator")
    answered = [
        set(who.split()) for (who,) in store.rows("SELECT survivors FROM rounds WHERE question = 'train' ORDER BY serial")
    ]
    store.close()
    assert [("newcomer" in who, "south" in who) for who in answered] == [(False, True)] * 3 + [(True, True)] * 3 + [
        (True, False)
    ] * 3
