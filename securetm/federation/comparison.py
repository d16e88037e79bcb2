"""Compares each party's own model with the shared one, on the party's documents and on those of all parties.

Only a simulation has the documents of all parties. A party computes its other figures itself and keeps them in its own store.
Large corpora are sampled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from securetm.contracts import State, TopicModel
from securetm.federation import comparison_sample
from securetm.federation.comparison_sample import Sampled, judged_each, sample_of
from securetm.federation.coordinator import Trained
from securetm.federation.documents import PartyDocuments
from securetm.federation.folder import RunFolder
from securetm.federation.local_training import held_out_likelihood, judge, keep_figures, kept_figures, prevalence, train_alone
from securetm.federation.party import Party
from securetm.federation.questions import COHERENCE, TOP_WORDS
from securetm.federation.store import read_arrays, write_arrays
from securetm.federation.usefulness import Predicted, frequencies, judged
from securetm.models.quality import document_npmi, mean_per_word, top_words
from securetm.stages import Stages


@dataclass(frozen=True)
class PartyFigures:
    """The figures of one party. A party that did not train alone has fewer."""

    shared: Mapping[str, float]
    prevalence: Any  # of the shared topics in its documents
    documents: Mapping[str, int]  # how many it has, and how many of them have a word that was agreed on
    alone: Mapping[str, float] = field(default_factory=dict)
    topics: Any = None  # of its own model, those first that take most of its documents


@dataclass(frozen=True)
class Comparison:
    """The figures of all parties, those over all documents, and how they were measured."""

    own: Mapping[str, PartyFigures]
    everywhere: Mapping[str, float]
    useful: Mapping[str, Any]
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class _PartySample:
    """One party and the sample of its documents."""

    party: Party
    sample: Sampled

    @property
    def documents(self) -> PartyDocuments:
        return self.sample.documents


def compare(
    folder: RunFolder, trained: Trained, make: Callable[[RunFolder, str], Party], stages: Stages, alone: bool = True
) -> Comparison:
    """Judges the shared model on all held-out documents; with `alone`, each party's own model too."""
    parties = {name: make(folder, name) for name in folder.members}
    for party in parties.values():
        party.documents.adopt(trained.vocabulary, folder.agreement)
    sides = {
        name: _PartySample(p, sample_of(p.documents, len(parties), folder.agreement.plan.seed)) for name, p in parties.items()
    }
    alone = alone and trained.rounds > 0
    begun = time.perf_counter()
    states = _all_alone(folder, sides, trained, stages) if alone else {}
    seconds = time.perf_counter() - begun
    model = folder.agreement.model
    stages.stage("judging the shared model" + (", and each party's own" if alone else ""), len(sides))
    own = {}
    for place, (name, side) in enumerate(sides.items(), start=1):
        begun = time.perf_counter()
        own[name] = _found(folder, side, model, trained.state, _everywhere(model, states[name], sides) if alone else None)
        seconds += time.perf_counter() - begun
        stages.step(place)
    shared, useful = _shared_everywhere(model, trained, sides)
    for party in parties.values():
        party.close()
    return Comparison(own, shared, useful, _facts(sides, alone, seconds))


def _facts(sides: Mapping[str, _PartySample], alone: bool, seconds: float) -> dict[str, Any]:
    drawn = any(side.sample.drawn for side in sides.values())
    limits = {
        "training_documents": comparison_sample.MOST_TRAINED,
        "judged_documents": judged_each(len(sides)),
    }  # of each party
    return {"made": alone, "sampled": drawn, **limits, "seconds": round(seconds, 2)}


def _all_alone(folder: RunFolder, sides: Mapping[str, _PartySample], trained: Trained, stages: Stages) -> dict[str, State]:
    """Lets every party train alone."""
    drawn = any(side.sample.drawn for side in sides.values())
    fewer = f", on samples of at most {comparison_sample.MOST_TRAINED:,} documents" if drawn else ""
    stages.stage(f"each party alone, for comparison{fewer}", len(sides) * trained.rounds)
    return {
        name: _alone(folder, side, trained, _after(place * trained.rounds, stages))
        for place, (name, side) in enumerate(sides.items())
    }


def _alone(folder: RunFolder, side: _PartySample, trained: Trained, on_round: Callable[[int, int], None]) -> State:
    """Trains alone, or reads the model that the party trained before."""
    party, agreement = side.party, folder.agreement
    kept = folder.party(party.name) / "alone.safetensors"
    if not kept.is_file():
        model, seed = agreement.model, agreement.plan.seed
        state = train_alone(agreement, party.name, side.documents.train, trained.rounds, party.store, on_round)
        keep_figures(party.store, "alone", judge(model, state, side.documents, seed))
        write_arrays(kept, model.for_party(state, party.name), {})
    return read_arrays(kept)[0]


def _found(
    folder: RunFolder, side: _PartySample, model: TopicModel, shared: State, everywhere: Mapping[str, float] | None
) -> PartyFigures:
    """Collects the figures of one party."""
    store, here = side.party.store, folder.party(side.party.name)
    keep_figures(store, "shared", judge(model, shared, side.documents, folder.agreement.plan.seed))
    shares = prevalence(model, shared, side.documents)
    write_arrays(here / "prevalence.safetensors", {"prevalence": shares}, {})
    found = PartyFigures(kept_figures(store, "shared"), shares, _read(side.party))
    if everywhere is None:
        return found
    own = read_arrays(here / "alone.safetensors")[0]
    topics = model.topics(own)[np.argsort(-prevalence(model, own, side.documents), kind="stable")]
    return PartyFigures(found.shared, shares, found.documents, {**kept_figures(store, "alone"), **everywhere}, topics)


def _everywhere(model: TopicModel, state: State, sides: Mapping[str, _PartySample]) -> dict[str, float]:
    """Judges one party's own model on all held-out documents, which no party has."""
    said = [held_out_likelihood(model, state, side.documents, side.party.agreement.plan.seed) for side in sides.values()]
    weights = [np.full(len(words), side.sample.judged) for (_, words), side in zip(said, sides.values(), strict=True)]
    found, words = (np.concatenate(part) for part in zip(*said, strict=True))
    mean, low, high = (float(np.exp(-value)) for value in mean_per_word(found, words, np.concatenate(weights)))
    return {"held_out_everywhere": mean, "held_out_everywhere_low": high, "held_out_everywhere_high": low}


def _shared_everywhere(
    model: TopicModel, trained: Trained, sides: Mapping[str, _PartySample]
) -> tuple[dict[str, float], dict[str, Any]]:
    """Judges the shared model on all documents, for figures that the coordinator may not ask for."""
    top = top_words(model.topics(trained.state), TOP_WORDS)
    counts = sparse.vstack([side.party.documents.for_question(COHERENCE).counts for side in sides.values()], format="csr")
    alone = np.log(frequencies([side.party.documents.for_question("train").counts for side in sides.values()]))
    said = [_predicted(model, trained.state, side, alone) for side in sides.values()]
    useful = judged(said, len(trained.vocabulary))
    if not trained.rounds:
        useful = {**useful, "useful": False}
    held_out = (useful["baseline"] or {}).get("model")
    npmi = float(np.mean(document_npmi(top, counts)))
    return {"npmi": npmi, "held_out": float("nan") if held_out is None else held_out}, useful


def _predicted(model: TopicModel, state: State, side: _PartySample, alone: Any) -> Predicted:
    found, words = held_out_likelihood(model, state, side.documents, side.party.agreement.plan.seed)
    assert side.documents.held_out is not None
    unseen = side.documents.held_out.halves(side.party.agreement.plan.seed)[1]
    return Predicted(found, np.asarray(unseen.counts @ alone), words, side.sample.judged)


def _read(party: Party) -> dict[str, int]:
    """Counts the party's documents, and those that have an agreed word."""
    read = {"all": len(party.corpus), "with_agreed_words": len(party.documents.for_question(COHERENCE))}
    keep_figures(party.store, "documents", read)
    return read


def _after(before: int, stages: Stages) -> Callable[[int, int], None]:
    """Reports steps that are counted from where the stage stood before this party."""
    return lambda done, _: stages.step(before + done)
