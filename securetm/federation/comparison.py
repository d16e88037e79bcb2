"""What taking part is worth: each party's own model beside the shared one, on its own documents and on everybody's.

Only the simulation can hold the last: it plays all roles. A party's other figures are computed by it and kept in its own store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from securetm.contracts import State, TopicModel
from securetm.federation.alone import held_out_likelihood, judge, keep_figures, kept_figures, prevalence, train_alone
from securetm.federation.coordinator import Trained
from securetm.federation.folder import RunFolder, Stages
from securetm.federation.party import Party
from securetm.federation.questions import COHERENCE, TOP_WORDS
from securetm.federation.store import read_arrays, write_arrays
from securetm.models.quality import document_npmi, perplexity, top_words


@dataclass(frozen=True)
class Found:
    """What one party found, and what only the simulation knows of it."""

    alone: Mapping[str, float]
    shared: Mapping[str, float]
    topics: Any  # of its own model, those first that take most of its documents
    prevalence: Any  # of the shared topics in its documents
    documents: Mapping[str, int]  # how many it has, and how many of them have a word that was agreed on


def compare(
    folder: RunFolder, trained: Trained, make: Callable[[RunFolder, str], Party], stages: Stages
) -> tuple[dict[str, Found], dict[str, float]]:
    """Every party trains alone, and every such model is tried on everybody's held-out documents; the shared one too."""
    stages.stage("each party alone, for comparison", len(folder.members) * trained.rounds)
    parties = {name: make(folder, name) for name in folder.members}
    states = {}
    for place, (name, party) in enumerate(parties.items()):
        party.documents.adopt(trained.vocabulary, folder.plan)
        states[name] = _alone(folder, party, trained, _after(place * trained.rounds, stages))
    model = folder.plan.make_model()
    found = {name: _found(folder, party, model, _everywhere(model, states[name], parties)) for name, party in parties.items()}
    whole = _shared_everywhere(model, trained.state, parties)
    for party in parties.values():
        party.close()
    return found, whole


def _shared_everywhere(model: TopicModel, state: State, parties: Mapping[str, Party]) -> dict[str, float]:
    """The shared model on all documents, which only the simulation holds: for figures that nobody may ask of the parties."""
    top = top_words(model.topics(state), TOP_WORDS)
    counts = sparse.vstack([party.documents.for_question(COHERENCE).counts for party in parties.values()], format="csr")
    return {"npmi": float(np.mean(document_npmi(top, counts))), "held_out": _everywhere(model, state, parties)}


def _alone(folder: RunFolder, party: Party, trained: Trained, on_round: Callable[[int, int], None]) -> State:
    """Run by a party for itself; once done, it is read from the party's own folder."""
    kept, plan, documents = folder.party(party.name) / "alone.safetensors", folder.plan, party.documents
    if not kept.is_file():
        model = plan.make_model()
        state = train_alone(plan, party.name, documents.train, trained.rounds, party.store, on_round)
        keep_figures(party.store, "alone", judge(model, state, documents, plan.seed))
        keep_figures(party.store, "shared", judge(model, trained.state, documents, plan.seed))
        shares = {"prevalence": prevalence(model, trained.state, documents)}
        write_arrays(folder.party(party.name) / "prevalence.safetensors", shares, {})
        write_arrays(kept, model.for_party(state, party.name), {})
    return read_arrays(kept)[0]


def _everywhere(model: TopicModel, state: State, parties: Mapping[str, Party]) -> float:
    """One party's own model on everybody's held-out documents: no party could find this out alone."""
    sums = [held_out_likelihood(model, state, party.documents, party.plan.seed) for party in parties.values()]
    return perplexity(np.array([likelihood for likelihood, _ in sums]), np.array([words for _, words in sums]))


def _found(folder: RunFolder, party: Party, model: TopicModel, everywhere: float) -> Found:
    here = folder.party(party.name)
    own = read_arrays(here / "alone.safetensors")[0]
    topics = model.topics(own)[np.argsort(-prevalence(model, own, party.documents), kind="stable")]
    alone = {**kept_figures(party.store, "alone"), "held_out_everywhere": everywhere}
    shares = read_arrays(here / "prevalence.safetensors")[0]["prevalence"]
    return Found(alone, kept_figures(party.store, "shared"), topics, shares, _read(party))


def _read(party: Party) -> dict[str, int]:
    """Run by a party for itself: a document without any agreed word takes no part, which nobody else could tell it."""
    read = {"all": len(party.corpus), "with_agreed_words": len(party.documents.for_question(COHERENCE))}
    keep_figures(party.store, "documents", read)
    return read


def _after(before: int, stages: Stages) -> Callable[[int, int], None]:
    """Steps counted from where the stage stood before this party."""
    return lambda done, _: stages.step(before + done)
