"""`securetm.federate`: a federation on this machine, with the statement on what may leave of its run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from securetm.corpus.corpus import PartyCorpus
from securetm.federation import simulation
from securetm.federation.federation_result import FederationResult


def federate(
    corpora: Mapping[str, PartyCorpus],
    folder: str | Path,
    settings: Mapping[str, Any] | None = None,
    *,
    workers: int = 1,
    ledgers: str | Path | None = None,
    comparison: bool = True,
) -> FederationResult:
    """Trains a federation of these parties in a new folder. Returns the table that `securetm run --json` prints.

    `settings` are those of a plan, by dotted name: {"profile": "open", "model.n_topics": 20, "training.rounds": 500}. Totals of
    the result (`rounds`, `seconds`, `bytes_up`, `bytes_down`) are those of the whole run, whatever interrupted it: seconds are
    added up over its parts, and bytes are all that was sent, also for rounds that were run again; `rounds` led to the model.
    `comparison=False` leaves out what each party learns alone, which takes about as long as the training.
    A privacy budget is that of this trial, unless `ledgers` is a folder: there it is the documents' own, over all runs.
    What may leave of the run is in `release/` in the folder, with a statement; nothing else may.
    """
    result = simulation.federate(corpora, folder, settings, workers=workers, ledgers=ledgers, comparison=comparison)
    if result["rounds"]:
        from securetm.reports.signed.written_report import write_release  # takes a second to load, which a mistake should not

        write_release(Path(folder))
    return result
