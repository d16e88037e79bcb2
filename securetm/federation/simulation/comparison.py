"""Compares each party's own model with the shared one, on the party's documents and on those of all parties.

Only a simulation can, since it plays all roles. None of these figures is an answer to anybody's question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from securetm.contracts import Array, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.data_classes import dataclass, replace
from securetm.federation.coordinator.coordinator import Trained
from securetm.federation.folder import RunFolder
from securetm.federation.origins import Beginning
from securetm.federation.party.alone import adapt, held_out_likelihood, judge, prevalence, rounds_of_adapting, train_alone
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.party.party import Party
from securetm.federation.questions import COHERENCE, TOP_WORDS, TRAIN
from securetm.federation.store import read_arrays, read_json, write_arrays, write_json
from securetm.models.quality import distinct_words, diversity, mean_per_word, named_topics, npmi_of_topics, top_words
from securetm.models.stored_model import StoredModel, write_model
from securetm.stages import Stages

_ALIKE = 0.005  # nats per word: no topic model is made for half a percent of perplexity
_FEW = 10  # documents: an interval of fewer is wrong too often


@dataclass(frozen=True)
class Predicted:
    """For each held-out document of one party: the log-likelihoods of its unseen words, and how many there are."""

    model: Array
    frequencies: Array
    words: Array
    each: float  # how many documents each stands for


def judged(parties: Sequence[Predicted], vocabulary: int) -> dict[str, Any]:
    """Returns the verdict `useful`: whether the model surely predicts better than word frequencies; None if that is open."""
    columns = ("model", "frequencies", "words")
    model, alone, words = (np.concatenate([getattr(one, name) for one in parties]) for name in columns)
    weights = np.concatenate([np.full(len(one.words), one.each) for one in parties])
    if not words.sum():
        return {"useful": None, "baseline": None}
    uniform = -np.log(vocabulary) * words
    gain, guess = (mean_per_word(model - other, words, weights) for other in (alone, uniform))
    perplexities = {
        name: _finite(float(np.exp(-mean_per_word(found, words, weights)[0])))
        for name, found in (("model", model), ("word_frequencies", alone))
    }
    facts = {**perplexities, "uniform": float(vocabulary), "documents": int((words > 0).sum()), "words": int(words.sum())}
    interval = {name: _finite(value) for name, value in zip(("value", "low", "high"), gain, strict=True)}
    baseline = {**facts, "gain": {**interval, "unit": "nats per word"}, "worse_than_uniform": not guess[2] >= 0}
    return {"useful": _verdict(gain, int((words > 0).sum())), "baseline": baseline}


_SAME_WORDS = 0.1  # of topics' top words, so few of which are different that the topics say the same
_LEFT_OUT = 0.5  # of the documents, of which a model that is of use does not tell nothing


def weighed(useful: dict[str, Any], diversity: float, documents: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Returns the verdict, where topics say the same words or most documents have none of them: then it is of no use."""
    whole = sum(each["all"] for each in documents.values())
    without = whole - sum(each["with_agreed_words"] for each in documents.values())
    why = ["same words"] * (diversity < _SAME_WORDS) + ["left out"] * (without > _LEFT_OUT * whole)
    facts = {"diversity": _finite(diversity), "documents": whole, "without_words": without, "why": why}
    return {**useful, "useful": False if why and useful["useful"] else useful["useful"], "weighed": facts}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _verdict(gain: tuple[float, float, float], documents: int) -> bool | None:
    """Returns the verdict, or None for too few documents. A model with infinite perplexity is of no use."""
    value, low, high = gain
    if not np.isfinite(value):
        return False
    if documents < _FEW:
        return None
    if low > 0:
        return True
    return False if high < 0 or max(-low, high) < _ALIKE else None


def npmi_everywhere(top: Array, corpora: Iterable[Corpus]) -> Array:
    """Each topic's mean NPMI over pairs of its top words, by the documents of all these corpora that hold both words."""
    words, place = distinct_words(top)
    together, total = np.zeros((len(words), len(words)), dtype=np.int64), 0
    for corpus in corpora:
        for _, documents in corpus.parts():
            present = documents.counts[:, words].astype(bool).astype(np.int64)
            together += (present.T @ present).toarray()
            total += len(documents)
    return npmi_of_topics(place, together, total)


def frequencies(corpora: Sequence[Corpus]) -> Array:
    """The share of each word in all these documents. Each count is raised by one, so that no word is impossible."""
    totals = np.ones(len(corpora[0].vocabulary))
    for corpus in corpora:
        for _, documents in corpus.parts():
            totals += np.asarray(documents.counts.sum(axis=0)).ravel()
    shares: Array = totals / totals.sum()
    return shares


ADAPTED = "adapted.safetensors"  # in the party's folder; beside it, how it was chosen
MOST_TRAINED = 10_000  # documents from which a party learns alone
MOST_JUDGED = 5_000  # held-out documents of all parties together, on which each model is judged


@dataclass(frozen=True)
class Comparison:
    """The figures of the shared model over all documents, how its training began, and what the run's result says besides."""

    everywhere: Mapping[str, float]
    began: Beginning
    told: dict[str, Any]


@dataclass(frozen=True)
class _Sampled:
    """One party, and the sample of its documents. A corpus that is no larger than the sample is taken whole."""

    party: Party
    documents: PartyDocuments
    judged: float  # how many held-out documents each that was drawn stands for
    drawn: bool  # whether anything was left out

    def likelihood(self, model: TopicModel, state: State) -> tuple[Array, Array]:
        return held_out_likelihood(model, state, self.documents, self.party.agreement.plan.seed)


def compare(
    folder: RunFolder, trained: Trained, make: Callable[[RunFolder, str], Party], stages: Stages, alone: bool = True
) -> Comparison:
    """Judges the shared model on all held-out documents; with `alone`, each party's own model too."""
    parties = [make(folder, name) for name in folder.members]
    for party in parties:
        party.documents.adopt(trained.vocabulary, folder.agreement)
    judged_each = max(1, MOST_JUDGED // max(len(parties), 1))
    sampled = [_sampled(party, judged_each) for party in parties]
    alone = alone and trained.rounds > 0
    begun = time.perf_counter()
    states = _all_alone(folder, sampled, trained, stages) if alone else {}
    adapted = _all_adapted(folder, sampled, trained, stages) if alone else {}
    stages.stage("judging the shared model" + (", and each party's own" if alone else ""), len(sampled))
    named = ("alone", "shared_at_party", "adapted_at_party", "topics_alone", "prevalence", "documents")
    told: dict[str, Any] = {name: {} for name in named}  # each by party
    for place, one in enumerate(sampled, start=1):
        name, model = one.party.name, folder.agreement.model
        told["shared_at_party"][name], shares, told["documents"][name] = _figures(folder, one, trained.state)
        told["prevalence"][name] = [round(float(share), 4) for share in shares]
        if alone:  # on the party's own documents, and on all held-out documents, which no party has
            store, state = one.party.store, states[name]
            topics = model.topics(state)[np.argsort(-prevalence(model, state, one.documents), kind="stable")]
            told["topics_alone"][name] = named_topics(topics, trained.vocabulary)
            told["alone"][name] = {**store.kept_figures("alone"), **_everywhere(model, state, sampled)}
            facts = read_json((store.folder / ADAPTED).with_suffix(".json"))
            figures = {**store.kept_figures("adapted"), **_everywhere(*adapted[name], sampled), **facts}
            told["adapted_at_party"][name] = figures
        stages.step(place)
    told["comparison"] = {
        "made": alone,
        "sampled": any(one.drawn for one in sampled),
        "training_documents": MOST_TRAINED,
        "judged_documents": judged_each,
        "seconds": round(time.perf_counter() - begun, 2),
    }
    shared, useful = _shared_everywhere(trained, sampled)
    spread = diversity(top_words(folder.agreement.model.topics(trained.state), 25))
    useful = weighed(useful, spread, told["documents"])
    began = Beginning.under(folder.agreement, trained.vocabulary)
    control = None
    if began.control is not None:  # topics that no document made, judged as the shared model is
        figures, _ = _shared_everywhere(replace(trained, state=began.control), sampled)
        topics = folder.agreement.model.topics(began.control)
        control = {**figures, "diversity": float(diversity(top_words(topics, 25)))}
    for party in parties:
        party.close()
    return Comparison(shared, began, {**told, **useful, "control": control})


def _sampled(party: Party, most_judged: int) -> _Sampled:
    """Draws the sample. The plan's public seed decides it, so every call returns the same documents."""
    documents, seed = party.documents, party.agreement.plan.seed
    assert documents.train is not None
    assert documents.held_out is not None
    assert documents.agreed is not None
    train, agreed = (_drawn(part, MOST_TRAINED, seed) for part in (documents.train, documents.agreed))
    held_out = _drawn(documents.held_out, most_judged, seed)
    drawn = (len(train), len(held_out)) != (len(documents.train), len(documents.held_out))
    each = len(documents.held_out) / max(len(held_out), 1)
    return _Sampled(party, replace(documents, train=train, agreed=agreed, held_out=held_out), each, drawn)


def _drawn(corpus: Corpus, most: int, seed: int) -> Any:
    if len(corpus) > most:
        corpus = corpus.select(np.sort(np.random.default_rng([seed, most]).choice(len(corpus), most, replace=False)))
    return corpus.gathered()


def _all_alone(folder: RunFolder, sampled: Sequence[_Sampled], trained: Trained, stages: Stages) -> dict[str, State]:
    """Lets every party train alone, or reads the model that it trained before."""
    fewer = f", on samples of at most {MOST_TRAINED:,} documents" if any(one.drawn for one in sampled) else ""
    stages.stage(f"each party alone, for comparison{fewer}", len(sampled) * trained.rounds)
    agreement, states = folder.agreement, dict[str, State]()
    for place, one in enumerate(sampled):
        party, kept = one.party, folder.party(one.party.name) / "alone.safetensors"
        if not kept.is_file():
            state = train_alone(agreement, party.name, one.documents.train, trained.rounds, _after(place, stages))
            party.store.keep_figures("alone", judge(agreement.model, state, one.documents, agreement.plan.seed))
            write_arrays(kept, agreement.model.for_party(state, party.name), {})
        states[party.name] = read_arrays(kept)[0]
    return states


def _all_adapted(
    folder: RunFolder, sampled: Sequence[_Sampled], trained: Trained, stages: Stages
) -> dict[str, tuple[TopicModel, State]]:
    """Lets every party adapt the shared model to its documents, or reads the model that it made before."""
    steps = rounds_of_adapting(trained.rounds)
    stages.stage("each party adapts the shared model to its documents", len(sampled) * steps)
    agreement, models = folder.agreement, dict[str, tuple[TopicModel, State]]()
    for place, one in enumerate(sampled):
        name, kept = one.party.name, folder.party(one.party.name) / ADAPTED
        if not kept.is_file():
            shared, train, seed = agreement.model.shared(trained.state), one.documents.train, agreement.plan.seed
            found = adapt(agreement.model, shared, train, trained.rounds, seed, _after(place, stages))
            figures, before = (
                judge(*of, one.documents, seed) for of in ((found.model, found.state), (agreement.model, shared))
            )
            if figures["held_out"] > before["held_out"]:  # not so where either is not known
                found, figures = found.unchanged(agreement.model, shared, train, seed), before
            one.party.store.keep_figures("adapted", figures)
            write_json(kept.with_suffix(".json"), found.facts())
            write_model(kept, found.model, found.state, trained.vocabulary)
        module = agreement.plan.model.settings.get("module", "")
        model, state, _ = StoredModel.open(kept).model(lambda _: type(agreement.model), module)
        models[name] = model, state
    return models


def _after(place: int, stages: Stages) -> Callable[[int, int], None]:
    return lambda done, total: stages.step(place * total + done)


def _figures(folder: RunFolder, one: _Sampled, shared: State) -> tuple[dict[str, float], Any, dict[str, int]]:
    """What the shared model is to one party, the shares of its topics there, and how many documents the party has.

    It is kept in the party's store.
    """
    model, store = folder.agreement.model, one.party.store
    figures = judge(model, shared, one.documents, folder.agreement.plan.seed)
    read = {"all": len(one.party.corpus), "with_agreed_words": len(one.party.documents.for_question(COHERENCE))}
    store.keep_figures("shared", figures)
    store.keep_figures("documents", read)
    shares = prevalence(model, shared, one.documents)
    write_arrays(folder.party(one.party.name) / "prevalence.safetensors", {"prevalence": shares}, {})
    return figures, shares, read


def _everywhere(model: TopicModel, state: State, everywhere: Sequence[_Sampled]) -> dict[str, float]:
    found, words = zip(*(other.likelihood(model, state) for other in everywhere), strict=True)
    weights = [np.full(len(part), other.judged) for part, other in zip(words, everywhere, strict=True)]
    ends = mean_per_word(*map(np.concatenate, (found, words, weights)))
    # A high likelihood is a low perplexity.
    names = ("held_out_everywhere", "held_out_everywhere_high", "held_out_everywhere_low")
    return {name: float(np.exp(-value)) for name, value in zip(names, ends, strict=True)}


def _shared_everywhere(trained: Trained, sampled: Sequence[_Sampled]) -> tuple[dict[str, float], dict[str, Any]]:
    """Judges the shared model on all documents, for figures that the coordinator may not ask for."""
    top = top_words(sampled[0].party.agreement.model.topics(trained.state), TOP_WORDS)
    alone = np.log(frequencies([one.party.documents.for_question(TRAIN) for one in sampled]))
    useful = judged([_predicted(trained.state, one, alone) for one in sampled], len(trained.vocabulary))
    if not trained.rounds:
        useful = {**useful, "useful": False}
    if sampled[0].party.agreement.model.embedding_size and useful["baseline"] is not None:
        # Embeddings were made of whole texts, unseen words included, so the perplexity is too low to say that the model is of
        # use. Where it is no better even so, the model is of no use.
        verdict = None if useful["useful"] else useful["useful"]
        useful = {"useful": verdict, "baseline": {**useful["baseline"], "from_whole_texts": True}}
    held_out = (useful["baseline"] or {}).get("model")
    npmi = float(np.mean(npmi_everywhere(top, (one.party.documents.for_question(COHERENCE) for one in sampled))))
    return {"npmi": npmi, "held_out": float("nan") if held_out is None else held_out}, useful


def _predicted(state: State, one: _Sampled, alone: Any) -> Predicted:
    found, words = one.likelihood(one.party.agreement.model, state)
    assert one.documents.held_out is not None
    unseen = one.documents.held_out.halves(one.party.agreement.plan.seed)[1]
    return Predicted(found, np.asarray(unseen.counts @ alone), words, one.judged)
