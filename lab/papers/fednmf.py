"""FedNMF (Si et al.): Tables III to V and Fig. 2 to 4, what tuning gives, and what protection costs in the same figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from lab.keeping import Key
from lab.measuring import OnProgress, Row
from lab.papers.experiment import MEDIUM, PAPER, SMALL, Experiment, Scale, reproduced
from lab.papers.fednmf_clients import frequent, labelled
from lab.papers.fednmf_findings import USUAL_TOPICS, findings
from lab.papers.fednmf_rows import (
    CENTRAL_LDA,
    CENTRAL_NMF,
    EACH_ROUND,
    FACTORED,
    FED_LDA,
    HETEROGENEOUS,
    MAIN,
    METHODS,
    PRIVATE,
    SUPERVISED,
    TUNING,
    WITH_MI,
    make,
)
from lab.papers.protected import SEMANTIC, under_profiles

USUAL: Mapping[str, Any] = {
    "clients": 10,
    "alpha": 1.0,
    "information": 0.1,
    "server_rate": 0.03,
    "learning_rate": 0.3,
    "weighting": "counts",
    "rounds": 20,
}
TOPICS, SHOWN = USUAL_TOPICS, ("FedLDA", "FedAvg", "FedAvg+MI", "FedAdam", "FedAdam+MI")
AVERAGED = tuple(server + end for server in ("FedAvg", "FedAdam") for end in ("", WITH_MI))  # those of Fig. 4
BESIDE = (FED_LDA, CENTRAL_LDA, CENTRAL_NMF, EACH_ROUND)
MORE_TOPICS: Mapping[str, int] = {"SMS Spam": 200, "TagMyNews": 200}  # tried where classifying takes no minutes
PAPERS_TAG_NEWS = 1_434  # documents of TagMyNews in the paper, which does not say which
MODELS, NO_BUDGET = ("nmf", "moments", "lda-vi", SEMANTIC), "fednmf"  # the last: its answer is of a whole party
_WORDS = "Lists of words are the most frequent ones of a corpus and are taken as public."
_SAMPLE = "Of TagMyNews 1,434 documents are drawn at random, as many as the paper has; it does not say which."
_NO_RT = "Rt Polarity is left out."
_LEARNED = "The classifier tries every document once, in five folds; the paper has one split of 80 and 20 %."
SCALES = {
    SMALL: Scale(
        SMALL,
        (0,),
        {
            "corpora": {"SMS Spam": (1_000, 2), "TagMyNews": (1_000, 2), "StackOverflow": (1_000, 2)},
            "words": 1_000,
            "topics": {20: 1},  # beside 50, each by so many seeds
            "methods of Fig. 2": FACTORED,
            "seeds of Fig. 4": 1,
            "rounds": 10,
            "alphas": (0.1, 10.0),
            "clients": (30,),
            "tuning": {
                "corpora": {"StackOverflow": (1_000, 2)},
                "words": 1_000,
                "seeds": 1,
                "informations": (0.1,),
                "server_rates": (0.03,),
            },
            "private": {"documents": 4_000, "models": ("nmf",), "seeds": 1},
            "supervised": (PAPERS_TAG_NEWS,),
        },
        (
            "1,000 documents of each corpus, 1,000 words, 10 rounds, one seed; k of 20 and 50 only.",
            "Under a profile: 4,000 documents and `nmf` alone.",
            _NO_RT,
            _LEARNED,
            _WORDS,
        ),
    ),
    MEDIUM: Scale(
        MEDIUM,
        (0, 1, 2),
        {
            "corpora": {"SMS Spam": (1_500, 2), "TagMyNews": (PAPERS_TAG_NEWS, 3), "StackOverflow": (2_000, 2)},
            "words": 1_000,
            "topics": {20: 3, 100: 3, 200: 3},
            "methods of Fig. 2": AVERAGED,
            "seeds of Fig. 4": 3,
            "rounds": 20,
            "alphas": (0.1, 10.0),
            "clients": (30, 50),
            "tuning": {
                "corpora": {"SMS Spam": (None, 1), "TagMyNews": (PAPERS_TAG_NEWS, 3), "StackOverflow": (4_000, 1)},
                "words": 2_000,
                "seeds": 3,
                "informations": (0.1, 0.5),
                "server_rates": (0.03, 0.1),
            },
            "private": {"documents": 4_000, "models": MODELS, "seeds": 3},
            "supervised": (PAPERS_TAG_NEWS, None),
        },
        (
            "1,500 documents of SMS Spam (5,572) and 2,000 of StackOverflow (20,000); tuning reads all of the first and "
            "4,000 of the second, as do runs under profiles.",
            "1,000 words (7,076 to 12,393); 2,000 for tuning.",
            "Tables III to V and Fig. 3 are at k = 50 alone (means over 50, 100 and 200; Fig. 3 at 100).",
            "Three seeds; one of `bfv`. Fig. 2 at other k than 50: FedAvg and FedAdam alone.",
            "Fig. 4 at 50 topics, alpha of 0.1, 1 and 10 (the paper's text does not name its values), 10, 30 and 50 clients.",
            _SAMPLE,
            _NO_RT,
            _LEARNED,
            _WORDS,
        ),
    ),
    PAPER: Scale(
        PAPER,
        (0, 1, 2, 3, 4),
        {
            "corpora": {"SMS Spam": (None, 1), "TagMyNews": (PAPERS_TAG_NEWS, 5), "StackOverflow": (None, 1)},
            "words": 10_000,
            "topics": {20: 5, 100: 5, 200: 5},
            "methods of Fig. 2": FACTORED,
            "seeds of Fig. 4": 5,
            "rounds": 40,
            "alphas": (0.1, 0.5, 5.0, 10.0),
            "clients": (30, 50),
            "tuning": {
                "corpora": {"SMS Spam": (None, 1), "TagMyNews": (PAPERS_TAG_NEWS, 5), "StackOverflow": (None, 1)},
                "words": 10_000,
                "seeds": 5,
                "informations": (0.01, 0.05, 0.1, 0.5),
                "server_rates": (0.01, 0.03, 0.1),
            },
            "private": {"documents": None, "models": (*MODELS, NO_BUDGET), "seeds": 5},
            "supervised": (PAPERS_TAG_NEWS, None),
        },
        (_SAMPLE, _NO_RT, _LEARNED, _WORDS),
    ),
}


def reproduce(
    scale: str = SMALL,
    keep: Path | None = None,
    workers: int = 1,
    on_progress: OnProgress | None = None,
    only: Sequence[str] = (),
) -> Row:
    """All tables and figures at a scale, or the rows that fit `only`.

    Corpora alone (corpus=NAME, or corpus=FILE of a labelled one of your own) make all tables and figures of these.
    """
    if not only or any(not one.startswith("corpus=") for one in only):
        return reproduced(FEDNMF, scale, keep, workers, on_progress, only)
    scales = {name: replace(size, sizes=_of_corpora(size.sizes, only)) for name, size in SCALES.items()}
    return reproduced(replace(FEDNMF, scales=scales), scale, keep, workers, on_progress)


def _of_corpora(sizes: Mapping[str, Any], only: Sequence[str]) -> Mapping[str, Any]:
    wanted = [one.removeprefix("corpus=") for one in only]
    usual = (max((most or 0 for most, _ in sizes["corpora"].values())) or None, 2)
    chosen = {corpus: sizes["corpora"].get(corpus, usual) for corpus in wanted}
    tuned = {corpus: sizes["tuning"]["corpora"].get(corpus, usual) for corpus in wanted}
    return {
        **sizes,
        "corpora": chosen,
        "tuning": {**sizes["tuning"], "corpora": tuned},
        "private": {"models": (), "seeds": 0},
        "supervised": (),
    }


# ---- what is made --------------------------------------------------------------------------------------------------------


def cases(scale: Scale) -> list[Key]:
    """The paper's cases seed by seed, then those under a profile: a run that is stopped has something of everything."""
    return [*(key for seed in scale.seeds for key in _of_seed(scale, seed)), *_private(scale)]


def _of_seed(scale: Scale, seed: int) -> Iterator[Key]:
    sizes, number = scale.sizes, scale.seeds.index(seed)
    yield from _main(scale, TOPICS, seed, METHODS)
    if number < sizes["seeds of Fig. 4"]:
        yield from _heterogeneous(scale, seed)
    if number == 0:
        yield from _supervised(scale)
    if number < sizes["tuning"]["seeds"]:
        yield from _tuned(scale, seed)
    for topics, seeds in sizes["topics"].items():
        if number < seeds:
            yield from _main(scale, topics, seed, sizes["methods of Fig. 2"])


def _places(of: Mapping[str, tuple[int | None, int]], words: int) -> Iterator[Row]:
    for corpus, (documents, epochs) in of.items():
        yield {"corpus": corpus, "documents": documents, "local_epochs": epochs, "words": words}


def _main(scale: Scale, topics: int, seed: int, methods: Sequence[str]) -> Iterator[Key]:
    usual = {**USUAL, "rounds": scale.sizes["rounds"], "topics": topics, "seed": seed}
    rounds = scale.sizes["rounds"]
    after = sorted({max(rounds // part, 1) for part in (10, 5, 2)})
    for place, method in product(_places(scale.sizes["corpora"], scale.sizes["words"]), methods):
        told = {"after": after} if method.startswith("Fed") and method != FED_LDA and topics == TOPICS else {}
        shown = {"shown": True} if method in SHOWN and place["corpus"] == "StackOverflow" and topics == TOPICS else {}
        yield {"part": MAIN, "method": method, **place, **usual, **told, **shown}


def _heterogeneous(scale: Scale, seed: int) -> Iterator[Key]:
    usual = {**USUAL, "rounds": scale.sizes["rounds"], "topics": TOPICS, "seed": seed}
    settings = [*({"alpha": alpha} for alpha in scale.sizes["alphas"]), *({"clients": n} for n in scale.sizes["clients"])]
    some = dict(list(scale.sizes["corpora"].items())[:2])
    for place, other, method in product(_places(some, scale.sizes["words"]), settings, AVERAGED):
        yield {"part": HETEROGENEOUS, "method": method, **place, **usual, **other}


def _tuned(scale: Scale, seed: int) -> Iterator[Key]:
    of = scale.sizes["tuning"]
    usual = {**USUAL, "rounds": scale.sizes["rounds"], "topics": TOPICS, "seed": seed}
    for place in _places(of["corpora"], of["words"]):
        first, last = of["server_rates"][0], of["server_rates"][-1]
        adam = {"part": TUNING, "method": "FedAdam", **place, **usual, "server_rate": first}
        yield from ({**adam, "method": method} for method in ("FedAvg", "FedAvg+MI", *BESIDE))
        yield from ({**adam, "server_rate": rate} for rate in of["server_rates"])
        yield {**adam, "weighting": "l2", "learning_rate": 1.0, "server_rate": last}
        yield from ({**adam, "method": "FedAdam+MI", "information": weight} for weight in of["informations"])
        if place["corpus"] in MORE_TOPICS:
            yield {**adam, "topics": MORE_TOPICS[place["corpus"]]}


def _supervised(scale: Scale) -> Iterator[Key]:
    for documents in scale.sizes["supervised"]:
        yield {"part": SUPERVISED, "method": "TF-IDF, linear SVM", "corpus": "TagMyNews", "documents": documents, "seed": 0}


def _private(scale: Scale) -> Iterator[Key]:
    of = scale.sizes["private"]
    place = {"part": PRIVATE, "corpus": "StackOverflow", "documents": of.get("documents"), "words": 1_000, "topics": 20}
    for one in under_profiles(of["models"], scale.seeds[: of["seeds"]]):
        model = one.pop("model")
        free = model == NO_BUDGET
        if not free or one["epsilon"] is None:
            rounds = scale.sizes["rounds"] if free else 0  # or the plan's
            yield {**place, "method": model, **one, "clients": 10, "alpha": 1.0, "rounds": rounds}


def corpora(scale: Scale) -> list[Row]:
    """What was learned from. It refuses at once where a corpus is not there."""
    found = []
    for corpus, (documents, _) in scale.sizes["corpora"].items():
        read = labelled(corpus, documents)
        left = frequent(corpus, documents, scale.sizes["words"])
        found.append(
            {
                "corpus": corpus,
                "documents": len(read),
                "with a listed word": len(left),
                "words": len(left.vocabulary),
                "words a document": round(float(left.lengths().mean()), 1),
                "labels": len(set(map(str, read.labels if read.labels is not None else ()))),
            }
        )
    return found


FEDNMF = Experiment(
    name="fednmf",
    paper="Federated NMF for short texts (FedNMF)",
    about=(
        "S. Si et al. let clients with different mixtures of labels factorise short texts together, and add a critic that is "
        "to raise the mutual information (MI) of texts and their topic weights. Tables III and IV compare coherence and "
        "classification by topic weights, over numbers of topics (Fig. 2), communication (Fig. 3), and how different clients "
        "are (Fig. 4); Table V shows words. Here each corpus is dealt out as there (q ~ Dir(alpha p), C = 0.2 of the clients "
        "in a round). A document's weights are those nearest to it under the finished topics; *kept* weights are those that "
        "Algorithm 1 leaves at the clients. The paper's coherence is by GloVe in 200 dimensions, ours by GloVe in 50: Table "
        "III can be compared in its order only. Last, the same figures under this project's profiles: real federations."
    ),
    scales=SCALES,
    cases=cases,
    make=make,
    findings=findings,
    corpora=corpora,
    some=("method=FedAdam", "corpus=TagMyNews", "topics=50", "part=main"),
    packages=("numpy", "numba", "scikit-learn"),
)
