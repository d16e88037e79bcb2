"""Messages of every shipped profile are read as what they are: numbers where numbers are visible, a named refusal where not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.auditing.attacks import attack_called
from securetm.auditing.judging import of_chance
from securetm.auditing.recorded import view_of
from securetm.auditing.views import (
    ANSWER,
    BY_PARTIES,
    MODEL,
    REQUEST,
    SEALED,
    TOTAL,
    VOCABULARY,
    AdversaryView,
    NotTestable,
    party_vectors,
    totals,
)
from securetm.contracts import Adversary, Domain
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.federation.store import read_arrays
from securetm.plans.profiles import profile_names

from .conftest import PARTIES, adversary, made_run, plan_tables, public_list, texts

MODELS: Mapping[str, Mapping[str, Any]] = {
    "prodlda": {"n_topics": 5, "hidden": 16, "batch": 34},
    "lda": {"n_topics": 5, "sweeps": 2},
    "sentence-lda": {"n_topics": 5, "sweeps": 2},
    "lda-matched": {"n_topics": 5, "sweeps": 2},
    "lda-vi": {"n_topics": 5},
}
EACH_ONLY = "lda-matched"  # asks each party for its own vector, which most profiles refuse
WITH_MATCHED = ("iftm", "open")
ENCRYPTED = ("bfv", "ckks")
PAIRS = [(p, m) for p in profile_names() for m in MODELS if m != EACH_ONLY or p in WITH_MATCHED]
QUICK = [
    ("masked", "lda"),
    ("ckks", "lda"),
    ("dp-local", "lda-vi"),
    ("iftm", EACH_ONLY),
]


class Made:
    """Runs over the same documents and the same public list of words, each once."""

    def __init__(self, place: Path) -> None:
        self.place, self.made = place, dict[tuple[str, str], RunFolder]()
        self.parties = {name: Corpus.from_strings(texts(160, seed), name=name) for seed, name in enumerate(PARTIES)}
        self.words = public_list(self.parties, place)

    def __call__(self, profile: str, model: str) -> RunFolder:
        if (profile, model) not in self.made:
            self.made[profile, model] = self._trained(profile, model)
        return self.made[profile, model]

    def _trained(self, profile: str, model: str) -> RunFolder:
        tables = plan_tables(profile, {"name": model, **MODELS[model]}, 2, self.words)
        return made_run(self.place / f"{profile}-{model}", self.parties, tables)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("runs"))


def seen(folder: RunFolder, *channels: str) -> AdversaryView:
    reader = replace(attack_called("sum_inversion"), needs=(REQUEST, VOCABULARY, *channels))
    return view_of(folder, adversary(), reader, 2)


def listed(pairs: list[tuple[str, str]]) -> list[Any]:
    return [pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow) for pair in pairs]


@pytest.mark.parametrize(("profile", "model"), listed(PAIRS))
def test_what_parties_say_is_read_or_refused_by_name(made: Made, profile: str, model: str) -> None:
    folder = made(profile, model)
    view = seen(folder, folder.agreement.profile.aggregation.channel)
    sent = [message for channel in BY_PARTIES for message in view.seen.get(channel, ())]
    assert len({(one.serial, one.sender) for one in sent}) >= 2 * len(PARTIES)
    if profile in ENCRYPTED:
        with pytest.raises(NotTestable, match="was not opened"):
            list(party_vectors(view))
        return
    heard = list(party_vectors(view))
    assert sorted(one.party for one in heard) == sorted(2 * PARTIES)
    for one in heard:
        sizes = [np.abs(block).max() for block in one.blocks.values()]
        assert np.isfinite(sizes).all()
        assert sum(sizes) > 0
        if one.round.terms.grid and one.round.terms.domain is Domain.INTEGER:  # whole numbers that stand for real ones
            assert all(block.dtype.kind == "f" for block in one.blocks.values())


@pytest.mark.parametrize(("profile", "model"), listed(PAIRS))
def test_opened_sums_are_read_or_refused_by_name(made: Made, profile: str, model: str) -> None:
    view = seen(made(profile, model), TOTAL)
    if profile in ENCRYPTED:
        with pytest.raises(NotTestable, match="the parties"):
            list(totals(view))
        return
    heard = list(totals(view))
    assert len(heard) == (0 if model == EACH_ONLY else 2)  # matched models open no sum
    assert all(np.isfinite(block).all() for one in heard for block in one.blocks.values())


def test_plain_answers_add_up_to_the_total_also_on_a_grid(made: Made) -> None:
    """Under dp-local whole numbers travel: read with their step they are what the coordinator added."""
    folder = made("dp-local", "lda-vi")
    summed: dict[int, Any] = {}
    for one in party_vectors(seen(folder, ANSWER)):
        summed[one.round.serial] = summed.get(one.round.serial, 0.0) + one.blocks["counts"]
    for total in totals(seen(folder, TOTAL)):
        np.testing.assert_allclose(summed[total.round.serial], total.blocks["counts"], atol=1e-9)
        assert np.abs(total.blocks["counts"]).max() < 1000


def test_a_coordinator_that_adds_the_noise_is_recorded_with_the_sum_before_it(made: Made) -> None:
    """Under dp-central it has every exact sum in its hands; whoever reads the finished model has none of them."""
    folder = made("dp-central", "lda")
    exact = [total.blocks["counts"] for total in totals(seen(folder, TOTAL))]
    assert len(exact) == 2
    assert all(table.min() == 0 and table.sum() > 0 for table in exact)  # with noise, counts of nothing are below 0 too
    released = read_arrays(folder.model, bare=True)[0]["counts"]
    assert np.abs(released - exact[-1]).max() > 3
    reader = view_of(
        folder, Adversary("model reader", "honest-but-curious", (MODEL, VOCABULARY)), attack_called("membership"), 2
    )
    assert reader.seen == {}


def test_the_control_keeps_counts_counts(made: Made) -> None:
    """In the clear they change places; sealed ones are any number of the ring."""
    view = seen(made("open", "lda"), ANSWER, TOTAL)
    drawn = of_chance(view, 7)
    for real, random in zip(party_vectors(view), party_vectors(drawn), strict=True):
        assert np.array_equal(np.sort(real.blocks["counts"], axis=None), np.sort(random.blocks["counts"], axis=None))
        assert not np.array_equal(real.blocks["counts"], random.blocks["counts"])
    sealed = of_chance(seen(made("masked", "lda"), SEALED), 7)
    assert all(np.abs(one.blocks["counts"]).max() > 2**30 for one in party_vectors(sealed))
