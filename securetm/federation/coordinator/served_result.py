"""The result of a run that a coordinator served: the fields of `securetm run --json`, with null for what only parties know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from securetm.federation.coordinator.coordinator import Trained
from securetm.federation.coordinator.served_folder import origin_of_served
from securetm.federation.data_free import Beginning
from securetm.federation.folder import RunFolder
from securetm.federation.moved_topics import moved_since
from securetm.federation.origins import before_by_name, facts_of
from securetm.federation.work_time import WorkTimer
from securetm.models.noisy_counts import top_words_above_noise
from securetm.models.quality import named_topics

UNKNOWN = (
    "useful", "baseline", "control", "alone", "shared_at_party", "adapted_at_party", "topics_alone", "comparison", "prevalence",
    "documents", "source", "dropped", "not_finite",
)  # fmt: skip


def served_result(
    folder: RunFolder, trained: Trained, timer: WorkTimer, spent: Callable[[int], Mapping[str, Any] | None]
) -> dict[str, Any]:
    """Returns what the coordinator may know of a finished run. Where parties keep the model, it has no topics."""
    model, plan = folder.agreement.model, folder.agreement.plan
    seen = trained.rounds > 0 and folder.agreement.profile.aggregation.opened_by == "coordinator"
    up, down = timer.transcript.traffic()
    return {
        "run": folder.path.resolve().name,
        "directory": str(folder.path),
        "model": plan.model.name,
        "profile": plan.profile,
        "parties": list(folder.members),
        "rounds": trained.rounds,
        "topics": named_topics(model.topics(trained.state), trained.vocabulary) if seen else [],
        "above_noise": top_words_above_noise(model, trained.state) if seen else None,
        **(model.findings(trained.state) if seen else {}),
        "start": Beginning.of(folder.agreement, trained.vocabulary if seen else ()).facts(len(trained.vocabulary)),
        "moved": moved_since(folder.agreement, trained.state if seen else {}, trained.vocabulary),
        "quality": {name: value for name, value in trained.quality.items() if value == value},
        "quality_by_simulation": [],
        "stopped": trained.stopped,
        "epochs": plan.training.epochs,
        **dict.fromkeys(UNKNOWN),
        "spent": [_spent(folder, name, spent(trained.rounds)) for name in folder.members],
        "origins": facts_of(folder.agreement, origin_of_served(folder)),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(timer.seconds(), 2),
        "bytes_up": up,
        "bytes_down": down,
    }


def _spent(folder: RunFolder, name: str, planned: Mapping[str, Any] | None) -> dict[str, Any]:
    """What this run spent of one party's budget by its plan, with what it started from; the party's ledger is not here."""
    if planned is None:
        return {"party": name, "unit": "document", "epsilon": None, "delta": None}
    own = {**planned, **planned.get("own", {})}
    return before_by_name(folder.agreement, name).added_to({"party": name, **own})
