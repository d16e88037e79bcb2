"""Watches a coordinator for the transcript and for progress. It changes nothing of the run."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.contracts import Answer
from securetm.federation.transcript import TOTAL, Recorded
from securetm.stages import Stages


@dataclass
class RecordingWatch:
    """Records opened answers and shows progress while the coordinator works."""

    recorded: Recorded
    stages: Stages
    title: str = ""  # of the stage of training
    _total: int = 0

    def round_begins(self, serial: int) -> None:
        """Messages belong to this round from now on."""
        self.recorded.serial = serial

    def opened(self, serial: int, answer: Answer) -> None:
        """Records the total, where contents are recorded."""
        if self.recorded.transcript.with_content and answer.total is not None:
            opened = b"".join(block.tobytes() for block in answer.total.values())
            self.recorded.transcript.record(serial, TOTAL, "coordinator", "coordinator", opened)

    def trained(self, done: int, total: int) -> None:
        """Shows progress. How many rounds there are may follow from the number of documents, so the first one tells it."""
        if total != self._total:
            self.stages.stage(self.title, total)
            self._total = total
        self.stages.step(done)
