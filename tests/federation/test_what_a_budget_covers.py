"""What a budget is spent on is what it speaks of: its own unit, its own delta, and nothing that answers beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.accounting.composition import total
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.corpus.corpus import Corpus
from securetm.federation.budget.prices import bill_of
from securetm.federation.folder import begin
from securetm.federation.questions import OtherUnit
from securetm.federation.simulation.simulation import execute
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.stages import Unwatched

from .conftest import FIVE, small_plan, texts
from .played import Played
from .private import paying_parties, private_plan


@pytest.mark.parametrize("model", [{"model__local_epochs": 1}, {"model": {"name": "fednmf"}}])
@pytest.mark.parametrize("unit", ["document", "person"])
def test_a_row_for_each_party_is_no_bound_for_a_document(unit: str, model: dict[str, Any], tmp_path: Path) -> None:
    """Without one document the party's row is another one, and two rows of length r lie up to 2 r apart."""
    plan = private_plan(tmp_path, "dp-local", privacy__unit=unit, **model)
    with pytest.raises(OtherUnit, match=f"for each party, and the budget protects each {unit}"):
        bill_of(agree(plan), 5)


@pytest.mark.slow
def test_a_run_says_its_epsilon_at_its_own_delta(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """The ledger was opened by a run with a larger delta, at which the same answers have a smaller epsilon."""
    first = private_plan(tmp_path, "dp-local", privacy__noise=8.0, privacy__delta=1e-4, training__rounds=1)
    execute(begin(tmp_path / "first", first, five, ledgers=tmp_path / "ledgers"), Unwatched(), comparison=False)
    plan = replace(first, privacy=replace(first.privacy, delta=1e-9), training=replace(first.training, rounds=2))
    folder = begin(tmp_path / "second", plan, five, ledgers=tmp_path / "ledgers")
    said = execute(folder, Unwatched(), comparison=False)["spent"][0]
    with Ledger.read(folder.ledger("north")) as ledger:
        spends = ledger.spends(folder.name)
    assert said["delta"] == 1e-9
    assert said["epsilon"] == pytest.approx(total(spends, ALONE * 1e-9).epsilon)
    assert said["epsilon"] > 1.2 * total(spends, ALONE * 1e-4).epsilon


@pytest.mark.parametrize("documents", [99, 100])
def test_no_vocabulary_makes_a_party_say_how_many_documents_use_it(
    documents: int, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """A coordinator that names a few words would otherwise learn exactly whether enough documents use one of them."""
    rare = [f"zyzzyva quagga {text}" for text in texts(FIVE["north"], 2, 3)]
    own = Corpus.from_strings([*rare, *texts(FIVE["north"], documents, 4)], name="north")
    plan = small_plan(profile="dp-distributed", privacy__noise=1.0)
    party = paying_parties(plan, {**five, "north": own}, tmp_path)["north"]
    played = Played(plan, tuple(five))
    assert isinstance(played.send(party, played.invite()), wire.Accepted)
    assert isinstance(played.send(party, wire.Adopt(b"quagga\nzyzzyva")), wire.Accepted)
    party.close()


def test_without_a_document_its_persons_others_stay_where_they_were(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Where documents are protected one by one, none may decide on which side of the split another one lies."""
    own = five["north"].replace(persons=np.zeros(len(five["north"]), np.int64))
    plan = private_plan(tmp_path, "dp-local", privacy__unit="document")
    for place in range(3):
        kept = own.select(np.delete(np.arange(len(own)), place))
        party = paying_parties(plan, {"north": kept, "south": five["south"]}, tmp_path / str(place))["north"]
        party.documents.adopt(own.vocabulary, agree(plan))
        assert 0.6 * len(own) < len(party.documents.for_question("train")) < 0.95 * len(own)
        party.close()
