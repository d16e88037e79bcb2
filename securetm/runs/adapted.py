"""A party's own adapted model in a folder of its own, which is read like the folder in which a finished model landed.

Everything in it was made of the party's own documents, so it is as secret as these, and there is no `release/` in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts.origin import Origin
from securetm.corpus.corpus import Corpus
from securetm.errors import CannotWrite, Mistake
from securetm.federation.folder import check_free
from securetm.federation.origins import moved
from securetm.federation.party.alone import Adapted, adapt, rounds_of_adapting
from securetm.federation.party.party import WORDS
from securetm.federation.party.result import REPORT, VERSION
from securetm.federation.release import MODEL
from securetm.federation.store import write_bytes, write_json
from securetm.models.quality import named_topics, perplexity_with_interval
from securetm.models.stored_model import write_model
from securetm.private_files import private_folder
from securetm.runs.finished import FinishedRun
from securetm.stages import Stages

_TITLE = "adapting the topics"


def check_free_folder(path: Path) -> None:
    """Refuses a folder that holds a run or a model already, or cannot be made."""
    check_free(path)
    if (path / REPORT).exists() or (path / MODEL).exists():
        raise CannotWrite(str(path), "it holds a model already")


def adapted_to(run: FinishedRun, documents: Corpus, own_topics: int | None, stages: Stages) -> tuple[Adapted, dict[str, Any]]:
    """Adapts a run's model to these documents. Returns it with its figures on documents that it did not learn from."""
    known = documents.project(run.vocabulary)
    known = known.select(np.flatnonzero(known.lengths() > 0))
    seed, rounds = run.plan.seed, run.rounds()
    train, held_out = known.split(1 - run.plan.training.held_out, seed)
    shared = run.model.shared(run.state)
    stages.stage(_TITLE, rounds_of_adapting(rounds))
    adapted = adapt(run.model, shared, train, rounds, seed, lambda done, _: stages.step(done), own_topics)
    if not adapted.chosen_by:
        raise Mistake(
            "{documents:document has|documents have} a word that the model knows: too few to adapt it and to see "
            "whether that helps",
            hint="give more documents; is the text column the right one (--text COLUMN)?",
            documents=len(known),
        )
    seen, unseen = held_out.halves(seed)
    words = unseen.lengths()
    figures = {}  # None where there was nothing to measure them by
    for name, model, state in (("shared", run.model, shared), ("adapted", adapted.model, adapted.state)):
        measured = perplexity_with_interval(np.asarray(model.log_likelihood(state, seen, unseen)), words)
        figures[name] = {one: value if np.isfinite(value) else None for one, value in measured.items()}
    before, after = (figures[name]["held_out"] for name in ("shared", "adapted"))
    if before is not None and after is not None and after > before:
        adapted = adapted.unchanged(run.model, shared, train, seed)
        figures = {"shared": figures["shared"], "adapted": figures["shared"], "not_kept": figures["adapted"]}
    return adapted, {"documents": {"train": len(train), "held_out": len(held_out)}, "held_out": figures}


def write_adapted(path: Path, run: FinishedRun, adapted: Adapted, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the model, its words, its labels and a report. `securetm topics` and `securetm transform` take the folder."""
    private_folder(path)
    tables = run.plan.tables()
    tables["training"] |= {"continue_from": "", "earlier_weight": 1.0}
    tables["vocabulary"] |= {"source": "file", "file": str((path / WORDS).resolve())}
    topics = adapted.model.topics(adapted.state)
    write_bytes(path / WORDS, "\n".join(run.vocabulary).encode())
    origin = Origin.unbounded("adapted to documents of one party, without noise")
    write_model(path / MODEL, adapted.model, adapted.state, run.vocabulary, origin=origin)
    run.labels().write(path)
    report = {
        "version": VERSION,
        "federation": run.name,
        "party": "adapted",
        "directory": str(path),
        "model": run.plan.model.name,
        "rounds": run.rounds(),
        "topics": named_topics(topics, run.vocabulary),
        "adapted": {**adapted.facts(), **figures},
        "quality": {name: value for name, value in figures["held_out"]["adapted"].items() if value is not None},
        "spent": None,  # no budget covers what the documents of the party changed
        "moved": moved(run.components_, topics, run.vocabulary),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "plan": tables,
    }
    write_json(path / REPORT, report)
    return report
