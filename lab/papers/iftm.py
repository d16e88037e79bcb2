"""Industrial federated topic modeling (Jiang et al.): Fig. 5 to 7, Table 3, and what its noise really promises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from lab.keeping import Key
from lab.measuring import OnProgress, Row
from lab.papers.experiment import MEDIUM, PAPER, SMALL, Experiment, Scale, reproduced
from lab.papers.iftm_findings import findings
from lab.papers.iftm_rows import ALIGNED, ALONE, MATCHED, PROTECTED, WITHOUT, make, split
from lab.papers.protected import MOMENTS, SEMANTIC, UNTRAINED, under_profiles

MODELS, EPSILONS, TAU = ("lda", "sentence-lda"), (8.0, 9.0, 10.0, 11.0), 0.2
PRIVATE = ("lda-vi", MOMENTS, SEMANTIC)  # models that take a budget for each document
CONTINUOUS, DISCRETE = "continuous", "discrete"
_CORPUS = (
    "Documents are of 20 Newsgroups over public words (the paper's corpus of 208,037 documents is not public), dealt "
    "out in the "
    "paper's shares: half by chance, half in the order of their labels."
)
_CLASSES = (
    "Table 3 tells five subjects apart (the paper: four grades of quality), with 600 labelled documents and 20 topics (100)."
)
_NO_SPEECH = "Word error rates (Table 2) need recordings; perplexity stands in their place."
_PROFILES = (
    "Under a profile there are four parties (masked sums take four) with all 18,821 documents, so that a budget can be judged; "
    "`bfv` was tried with one seed."
)
_MORE = "`lda` and `sentence-lda` of one party are tried with 20 and with 60 topics, and the better ones stand in Fig. 5."
SCALES = {
    SMALL: Scale(
        SMALL,
        (0,),
        {
            "documents": 900, "words": 500, "topics": (20,), "sweeps": 10, "rounds": 5, "synchronised": 60, "epochs": 40,
            "epsilons": (8.0, 11.0), "taus": (0.8,), "tau_epsilons": (11.0,), "four": (None,), "models": ("lda",),
            "all_epsilons": True, "private": {"models": ("lda-vi",), "documents": 4_000, "seeds": 1},
        },
        ("900 documents (208,037), 500 words, one seed; `lda` alone; epsilon 8 and 11.", _CORPUS, _CLASSES, _NO_SPEECH),
    ),
    MEDIUM: Scale(
        MEDIUM,
        (0, 1, 2),
        {
            "documents": 1_200, "words": 600, "topics": (20, 60), "sweeps": 10, "rounds": 5, "synchronised": 100,
            "epochs": 60, "epsilons": EPSILONS, "taus": (0.4, 0.8), "tau_epsilons": (8.0, 11.0),
            "four": (None, 11.0), "models": MODELS, "all_epsilons": False,
            "private": {"models": PRIVATE, "documents": 18_821, "seeds": 3},
        },
        (
            "1,200 documents (208,037), 600 words; three seeds.",
            "5 rounds of 10 sweeps; 100 rounds where parties synchronise at every iteration (over 300).",
            "Thresholds other than 0.2 and four parties are tried with `lda` alone, `sentence-lda` with epsilon 8 and 11.",
            _MORE, _PROFILES, _CORPUS, _CLASSES, _NO_SPEECH,
        ),
    ),
    PAPER: Scale(
        PAPER,
        (0, 1, 2, 3, 4),
        {
            "documents": 18_821, "words": 5_000, "topics": (20, 60, 100), "sweeps": 20, "rounds": 20, "synchronised": 400,
            "epochs": 200, "epsilons": EPSILONS,
            "taus": (0.1, 0.4, 0.6, 0.8), "tau_epsilons": EPSILONS, "four": (None, *EPSILONS),
            "models": MODELS, "all_epsilons": True,
            "private": {"models": PRIVATE, "documents": 18_821, "seeds": 5},
        },
        ("18,821 documents (208,037).", _MORE, _CORPUS, _CLASSES, _NO_SPEECH),
    ),
}  # fmt: skip


def reproduce(
    scale: str = SMALL,
    keep: Path | None = None,
    workers: int = 1,
    on_progress: OnProgress | None = None,
    only: Sequence[str] = (),
) -> Row:
    """All figures at a scale, or the rows that fit `only`."""
    return reproduced(IFTM, scale, keep, workers, on_progress, only)


# ---- what is made ----------------------------------------------------------------------------------------------------


def cases(scale: Scale) -> list[Key]:
    """Seed by seed, so that a run that is stopped has something of everything; last, those under a profile."""
    return [*(key for seed in scale.seeds for key in _of_seed(scale, seed)), *_under_profiles(scale)]


def _of_seed(scale: Scale, seed: int) -> Iterator[Key]:
    of = scale.sizes
    place = {"documents": of["documents"], "words": of["words"], "parties": 3, "seed": seed}
    yield {"trained": WITHOUT, **place}
    for model in of["models"]:
        yield from _of_model(of, {"model": model, **place})
    yield from _thresholds(of, {"model": "lda", **place})
    for epsilon in of["four"]:
        yield _matched(of, {"model": "lda", **place, "parties": 4}, epsilon)


def _of_model(of: Mapping[str, Any], place: Row) -> Iterator[Key]:
    for topics, party in product(of["topics"], ("P1", "P2", "P3")):
        yield {"trained": ALONE, "party": party, **place, "topics": topics, "rounds": of["epochs"]}
    rounds = [n for n in (1, 2, 5, 10, 20, 50, 100, 200, 400) if n < of["synchronised"]]
    yield {
        "trained": ALIGNED, **place, "topics": of["topics"][0], "epsilon": None, "rounds": of["synchronised"],
        "after": [*rounds, of["synchronised"]],
    }  # fmt: skip
    yield _matched(of, place, None)
    epsilons = of["epsilons"] if place["model"] == "lda" or of["all_epsilons"] else (of["epsilons"][0], of["epsilons"][-1])
    yield from (_matched(of, place, epsilon) for epsilon in epsilons)
    yield from (_matched(of, place, epsilon, distribution=DISCRETE) for epsilon in (of["epsilons"][0], of["epsilons"][-1]))


def _thresholds(of: Mapping[str, Any], place: Row) -> Iterator[Key]:
    for tau, epsilon in product(of["taus"], of["tau_epsilons"]):
        yield _matched(of, place, epsilon, tau)


def _matched(of: Mapping[str, Any], place: Row, epsilon: float | None, tau: float = TAU, distribution: str = CONTINUOUS) -> Key:
    noise = {"epsilon": epsilon} if epsilon is None else {"epsilon": epsilon, "tau": tau, "distribution": distribution}
    rounds = [n for n in (1, 2, 3, 5, 8, 12) if n < of["rounds"]]
    return {
        "trained": MATCHED, **place, "topics": of["topics"][0], **noise, "sweeps": of["sweeps"], "rounds": of["rounds"],
        "after": [*rounds, of["rounds"]],
    }  # fmt: skip


def _under_profiles(scale: Scale) -> Iterator[Key]:
    of = scale.sizes["private"]
    place = {"documents": of["documents"], "words": scale.sizes["words"], "parties": 4, "topics": scale.sizes["topics"][0]}
    for one in under_profiles(of["models"], scale.seeds[: of["seeds"]]):
        yield {"trained": PROTECTED, **one, **place}
    for seed in scale.seeds[: of["seeds"]]:
        yield {"trained": PROTECTED, "model": WITHOUT, "profile": UNTRAINED, "epsilon": None, "seed": seed, **place}


def corpora(scale: Scale) -> list[Row]:
    """What was learned from, with the first seed. It refuses at once where the corpus is not there."""
    found = []
    for parties in (3, 4):
        place = split(scale.sizes["documents"], scale.sizes["words"], parties, scale.seeds[0])
        sizes = ", ".join(f"{name} {len(documents):,}" for name, documents in place.parties.items())
        found.append(
            {
                "corpus": "20 Newsgroups",
                "parties": parties,
                "documents of each": sizes,
                "documents that judge": len(place.tested),
                "words": len(place.tested.vocabulary),
            }
        )
    return found


IFTM = Experiment(
    name="iftm",
    paper="Industrial federated topic modeling (iFTM)",
    about=(
        "D. Jiang et al. let three unequal parties train LDA and SentenceLDA. Each puts Laplace noise of scale 1 / "
        "epsilon on the count of every word of the list at every place of its documents, sets what is not above tau to "
        "zero, trains topics of its own, and sends them; a master merges similar ones and gives each party better ones to "
        "go on from. The paper asks how this compares with one party's own topics (Fig. 5), what noise costs (Fig. 6), "
        "how many rounds it takes (Fig. 7), and what topics are worth to a classifier (Table 3) and to a language model "
        "(Table 2). Likelihood here is of half of each document that judges, given the other half, for a word; the "
        'paper\'s is a sum over its 29,700 documents that judge. `merged = "all"` keeps all topics that are found, as '
        "there. Noise is made by the mechanism of the profile `iftm`."
    ),
    scales=SCALES,
    cases=cases,
    make=make,
    findings=findings,
    corpora=corpora,
    some=("model=lda", "party=P3", "topics=60"),
    packages=("numpy", "numba", "scikit-learn"),
)
