"""Ways to come to one list of words, side by side: what each finds, and what it costs until the parties have the list.

All roles take turns in one process, so the seconds are those of all of them on one core. Beside the ways stands the largest
blind list: parties with as many different words as may be, most of which no other party has.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lab.federations import dealt_out
from lab.measuring import OnProgress, Row, figure, record, told
from lab.processes import measurable, peak_mebibytes
from lab.research_corpora import FILE, INSTEAD, newsgroups_file, research_corpus
from securetm.corpus.corpus import Corpus
from securetm.corpus.docstrings import docstring_parties
from securetm.corpus.held_documents import HeldDocuments
from securetm.federation.coordinator.coordinator import Coordinator, coordinator_of
from securetm.federation.coordinator.rounds import Attendance
from securetm.federation.coordinator.words import new_words, tell_words
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import InProcess, make_party
from securetm.federation.transcript import Transcript
from securetm.plans.recommend import plan_from_tables
from securetm.plans.schema import Plan

PARTIES, EPSILON, MOST_WORDS = 5, 3.0, 10_000
LARGEST, OWN_WORDS, DOCUMENTS = 10, 200_000, 20_000  # parties, words of each, documents of each


@dataclass(frozen=True)
class Way:
    profile: str
    vocabulary: Mapping[str, Any]
    epsilon: float = 0.0
    model: str = "lda-vi"


WAYS: Mapping[str, Way] = {
    "union": Way("open", {"source": "union"}),
    "file": Way("masked", {"source": "file", "file": "english"}),
    "joint": Way("masked", {"source": "joint"}),
    "blind": Way("masked", {"source": "blind"}),
    "blind, opened by the parties": Way("bfv", {"source": "blind"}),
    "joint, epsilon 3": Way("dp-distributed", {"source": "joint"}, EPSILON, "moments"),
    "blind, epsilon 3": Way("dp-distributed", {"source": "blind"}, EPSILON, "moments"),
}


def bench(on_progress: OnProgress | None = None) -> Row:
    """The words, seconds and bytes of each way, and of the largest blind list."""
    if newsgroups_file():
        corpus = research_corpus(FILE).replace(name="20 Newsgroups")
    else:
        corpus = Corpus.concat(list(docstring_parties().values()), name=INSTEAD)
    rows = list[Row]()
    parties = dealt_out(corpus, PARTIES)
    for case in told([*WAYS, ""], on_progress):
        rows += _costs(case, _plan(WAYS[case]), parties) if case else _largest()
    return record("word-lists", rows, corpus=corpus.name, documents=len(corpus), parties=PARTIES)


def _plan(way: Way, **more: int) -> Plan:
    words = {"max_words": MOST_WORDS, "min_documents": 5, "most_candidates": 100_000, **more}
    if way.vocabulary["source"] == "file":
        del words["most_candidates"]
    tables = {
        "profile": way.profile,
        "model": {"name": way.model, "n_topics": 20},
        "vocabulary": {**way.vocabulary, **words},
        "privacy": {"epsilon": way.epsilon} if way.epsilon else {},
    }
    return plan_from_tables(tables, "the experiment")


def _costs(case: str, plan: Plan, parties: Mapping[str, Corpus]) -> list[Row]:
    """One way, from the invitation to the list that every party has read its documents in."""
    with tempfile.TemporaryDirectory() as place:
        folder = begin(Path(place) / "run", plan, parties)
        asked = InProcess({name: make_party(folder, name) for name in folder.members})
        began = time.perf_counter()
        with coordinator_of(folder, asked, Attendance()) as coordinator:
            found = _listed(coordinator)
        seconds = time.perf_counter() - began
        asked.close()
        transcript = Transcript(folder.path / "transcript")
        up, down = transcript.traffic()
        transcript.close()
    each = len(parties) * 1e6
    return [
        figure(f"{case}: words", len(found), "words", 0),
        figure(f"{case}: until all have the list", seconds, "s", 2),
        figure(f"{case}: from each party", up / each, "MB", 2),
        figure(f"{case}: to each party", down / each, "MB", 2),
    ]


def _listed(coordinator: Coordinator) -> tuple[str, ...]:
    """Invites, makes the list and tells it: all of a run that comes before its training."""
    coordinator.invite()
    words = new_words(coordinator)
    tell_words(coordinator, words)
    return words


def _largest() -> list[Row]:
    """Ten parties of 200,000 words each, half of which no other party has."""
    case = "blind, {} parties of " + f"{OWN_WORDS:,} words each"
    rows = _costs(case.format(LARGEST), _plan(WAYS["blind"], max_words=2_000), _with_many_words(LARGEST))
    if measurable():
        for parties in (LARGEST, 2 * LARGEST):
            above = peak_mebibytes(_until_listed, parties)
            rows.append(figure(f"{case.format(parties)}: memory of all roles above their documents", above, "MiB", 0))
    return rows


def _until_listed(parties: int) -> Callable[[], object]:
    """All roles with their documents, ready to come to a list."""
    place = tempfile.mkdtemp()
    folder = begin(Path(place) / "run", _plan(WAYS["blind"], max_words=2_000), _with_many_words(parties))
    asked = InProcess({name: make_party(folder, name) for name in folder.members})

    def run() -> None:
        with coordinator_of(folder, asked, Attendance()) as coordinator:
            _listed(coordinator)
        asked.close()
        shutil.rmtree(place)

    return run


def _with_many_words(parties: int) -> Mapping[str, Corpus]:
    return {f"party {n + 1}": _many_words(n) for n in range(parties)}


def _many_words(party: int) -> Corpus:
    """Documents in which every word of a party stands: each rare word once, beside frequent ones."""
    rng, half = np.random.default_rng(party), OWN_WORDS // 2
    words = (*(f"shared{n}" for n in range(half)), *(f"own{party}x{n}" for n in range(half)))
    rows = np.concatenate([rng.permutation(np.arange(OWN_WORDS) % DOCUMENTS), np.repeat(np.arange(DOCUMENTS), 20)])
    often = np.minimum((rng.pareto(0.8, 20 * DOCUMENTS) * 20).astype(np.int64), half - 1)
    cells = (np.ones(len(rows), np.int32), (rows, np.concatenate([np.arange(OWN_WORDS), often])))
    counts = sparse.coo_array(cells, (DOCUMENTS, OWN_WORDS)).tocsr()
    counts.sum_duplicates()
    return Corpus(
        HeldDocuments(counts, words, np.arange(DOCUMENTS, dtype=np.uint64) + np.uint64(party << 32)), f"party {party}"
    )
