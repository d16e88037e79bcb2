"""Five parties that meet over mutual TLS train the very same model, bit for bit, as the simulation of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import make_party, train
from securetm.stages import Unwatched

from ..federation.conftest import FIVE, small_plan
from .meeting import PATIENCE, Events, Meeting, Parties

pytestmark = pytest.mark.own_draws  # threads draw at once, and the stream of a test serves one of them


def test_the_model_is_the_simulations_bit_for_bit(five: Mapping[str, Corpus], keyring: Meeting, tmp_path: Path) -> None:
    plan = small_plan(profile="masked", model__batch=25)
    alone, apart = (begin(tmp_path / name, plan, five) for name in ("alone", "apart"))
    train(alone, Unwatched())
    meeting, events = keyring.at_another_port(), Events()
    hub = meeting.hub(events)
    hub.start()
    with Parties() as parties:
        for name in FIVE:
            party = make_party(apart, name)
            parties.callback(party.close)
            parties.run(meeting.dialer(name, lambda party=party: party.most_bytes), party.handle)
        assert hub.wait_for(FIVE, PATIENCE) == frozenset(FIVE)
        trained = train(apart, Unwatched(), parties=hub.parties(PATIENCE))
        hub.close(finished=True)
    assert parties.ended == dict.fromkeys(FIVE, True)
    assert trained.rounds == plan.training.rounds
    assert apart.model.read_bytes() == alone.model.read_bytes()
    assert events.received > 0
    assert [told for told in events.told if told[0] == "refused"] == []
