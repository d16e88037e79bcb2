"""What the result of every finished run says, whether it was simulated or served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from securetm.contracts.origin import Origin
from securetm.federation.coordinator.coordinator import Trained
from securetm.federation.folder import RESULT, RunFolder, bind_all
from securetm.federation.origins import Beginning, facts_of, moved_since
from securetm.federation.store import json_bytes, write_bytes
from securetm.federation.transcript import WorkTimer
from securetm.models.noisy_counts import top_words_above_noise
from securetm.models.quality import named_topics


def run_result(
    folder: RunFolder,
    trained: Trained,
    timer: WorkTimer,
    began: Beginning,
    spent: Sequence[Mapping[str, Any]],
    origin: Origin,
    *,
    seen: bool,  # whether the topics are known here, and any were learned
) -> dict[str, Any]:
    """The part of the result that does not depend on who tells it."""
    agreement, model = folder.agreement, folder.agreement.model
    up, down = timer.transcript.traffic()
    return {
        "run": folder.path.resolve().name,
        "directory": str(folder.path),
        "model": agreement.plan.model.name,
        "profile": agreement.plan.profile,
        "parties": list(folder.members),
        "rounds": trained.rounds,
        "topics": named_topics(model.topics(trained.state), trained.vocabulary) if seen else [],
        "above_noise": top_words_above_noise(model, trained.state) if seen else None,
        **(model.findings(trained.state) if seen else {}),
        "start": began.facts(len(trained.vocabulary)),
        "moved": moved_since(agreement, trained.state if seen else {}, trained.vocabulary),
        "quality": {name: value for name, value in trained.quality.items() if value == value},  # those that are numbers
        "quality_by_simulation": [],
        "stopped": trained.stopped,
        "epochs": agreement.plan.training.epochs,  # that the plan asks for; 0: rounds
        "spent": list(spent),
        "origins": facts_of(agreement, origin),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(timer.seconds(), 2),  # of all parts of the run, interrupted and killed ones too
        "bytes_up": up,  # all that was sent, also for rounds that were run again after an interruption
        "bytes_down": down,
    }


def write_result(folder: RunFolder, result: Mapping[str, Any]) -> None:
    """Written last: it marks the run as finished."""
    content = json_bytes(result)
    bind_all(folder.path, {RESULT: content})
    write_bytes(folder.path / RESULT, content)
