"""A party under a budget tries its processor before its first charge, and refuses by name what a clip would not bound."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from securetm.corpus.corpus import Corpus
from securetm.federation.party.party import Party
from securetm.federation.questions import TRAIN
from securetm.federation.wire import wire
from securetm.models.neural.torch_kernels import TorchKernels
from securetm.plans.schema import Plan

from .played import Played
from .private import paying_parties, private_plan, settle


def replied(plan: Plan, corpora: Mapping[str, Corpus], folder: Path) -> tuple[Party, wire.Outcome]:
    """What a party says to its first question for training if its model goes the way of a GPU."""
    party, played = paying_parties(plan, corpora, folder)["north"], Played(plan, tuple(corpora))
    party.questions.agreement.model.__dict__["_kernels"] = TorchKernels(torch.device("cpu"))
    settle(played, party)
    return party, played.send(party, played.ask(TRAIN, played.fresh()))


@pytest.mark.parametrize("which", ["north", "south"])
def test_a_model_whose_rows_nobody_fixes_is_refused_whatever_the_documents(
    which: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = private_plan(tmp_path, "dp-local", model__name="prodlda", model__hidden=8, privacy__noise=1.0)
    party, reply = replied(plan, {**five, "north": five[which]}, tmp_path)
    assert reply == wire.Refusal("RowsDepend")
    assert party.ledger is not None
    assert not party.ledger.spends(party.run)  # nothing was spent
    party.close()
