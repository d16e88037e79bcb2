"""What a party sends under noise on words is a function of the noised words: other words, the same noised ones, the same bytes.

Randomness and clocks are the tests' own here, so that nothing else differs. No claim rests on such runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.accounting.ledger import ledger as clocks
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem, Seeded
from securetm.federation.folder import begin
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.simulation.simulation import execute
from securetm.federation.sources import named_for
from securetm.federation.transcript import Transcript
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import small_plan
from .private import PUBLIC, public_words

MODELS: Mapping[str, Mapping[str, Any]] = {
    "lda": {"n_topics": 3, "sweeps": 2},
    "lda-matched": {"n_topics": 3},
    "lda-vi": {"n_topics": 3},
    "moments": {"n_topics": 3},
    "nmf": {"n_topics": 3},
    "sentence-lda": {"n_topics": 3},
    "prodlda": {"n_topics": 3, "hidden": 8, "batch": 16},
}
Sent = list[tuple[Any, ...]]


def corpora(words: int) -> Mapping[str, Corpus]:
    """Documents and sentences of the same lengths in every set, with other words at every place."""
    made, drawn = {}, np.random.default_rng(words)
    for place, name in enumerate(("north", "south", "west")):
        rng = np.random.default_rng(place)
        sentences = rng.integers(1, 8, 3 * (12 + 4 * place))
        ends = np.cumsum(sentences)
        tokens = drawn.integers(0, len(PUBLIC), ends[-1])
        keys = rng.integers(0, 2**63, len(ends) // 3).astype(np.uint64)
        made[name] = Corpus.from_tokens(tokens, ends[2::3], PUBLIC, sentence_ends=ends, keys=keys, name=name)
    return made


def plan_of(folder: Path, model: str) -> Plan:
    folder.mkdir(exist_ok=True)
    words = {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": public_words(folder)}
    return small_plan(profile="iftm", model={"name": model, **MODELS[model]}, training__rounds=3, **words)


def sent(folder: Path, held: Mapping[str, Corpus], model: str, monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Every message of every party in one run over these documents, and what the coordinator made of them."""
    plan, stream = plan_of(folder, model), Seeded(bytes(range(32)), unsafe=True)
    with monkeypatch.context() as patched:
        patched.setattr(OperatingSystem, "bytes", lambda _, n: stream.bytes(n))
        patched.setattr(clocks, "_now", lambda: "2026-01-01T00:00:00.000+00:00")
        made = begin(folder / "run", plan, held, with_content=True)
        result = execute(made, Unwatched(), comparison=False)
    assert result["rounds"] == plan.training.rounds
    transcript = Transcript(made.path / "transcript")
    said = "SELECT serial, channel, sender, receiver, content FROM messages WHERE channel != 'request' ORDER BY at"
    found = transcript.rows(said)
    transcript.close()
    assert {sender for _, _, sender, _, _ in found if sender != "coordinator"} == set(held)
    return found


def words_behind_noise(held: Mapping[str, Corpus], plan: Plan) -> list[Any]:
    """Each party's words that learning begins with, slot after slot."""
    found = []
    for corpus in held.values():
        documents = PartyDocuments(named_for(corpus, agree(plan).budget).in_blocks())
        documents.adopt(PUBLIC, agree(plan))
        found.append(documents.for_question("train").tokens)
    return found


def with_noise_that_makes_up_for_it(
    own: Sequence[Any], others: Sequence[Any], monkeypatch: pytest.MonkeyPatch
) -> list[tuple[int, int]]:
    """From now on the noise on these words is the former noise, plus the other words, minus these ones."""
    draw, met = SlotNoise.draw, []

    def injected(law: SlotNoise, secret: bytes, words: Any, first: int) -> tuple[Any, Any, Any]:
        ranges = [slice(first, first + len(words)) for _ in own]
        (party,) = [n for n, part in enumerate(ranges) if np.array_equal(own[n][part], words)]
        met.append((party, len(words)))
        return draw(law, secret, others[party][ranges[party]].astype(np.int32), first)

    monkeypatch.setattr(SlotNoise, "draw", injected)
    return met


@pytest.mark.parametrize("model", quick(MODELS, "lda"))
def test_other_words_behind_the_same_noised_ones_are_the_same_bytes(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = corpora(1), corpora(2)
    plan = plan_of(tmp_path / "plan", model)
    theirs, ours = words_behind_noise(one, plan), words_behind_noise(two, plan)
    assert all(np.mean(a != b) > 0.9 for a, b in zip(theirs, ours, strict=True))
    first = sent(tmp_path / "one", one, model, monkeypatch)
    plain = sent(tmp_path / "two", two, model, monkeypatch)
    with monkeypatch.context() as patched:
        met = with_noise_that_makes_up_for_it(ours, theirs, patched)
        again = sent(tmp_path / "again", two, model, monkeypatch)
    assert {(n, len(words)) for n, words in enumerate(ours)} <= set(met)
    assert again == first
    forms = [[(*message[:4], len(message[4])) for message in whole] for whole in (first, plain)]
    assert forms[0] == forms[1]  # nothing but content tells which words they were: all lengths are public
    assert {message[2] for message, other in zip(first, plain, strict=True) if message != other} >= set(one)
