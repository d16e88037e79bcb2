"""One pass of a member, for a timer or a stick that is carried by hand: take in, answer, put out, and say who is awaited."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from securetm.credentials.roster import COORDINATOR
from securetm.data_classes import dataclass
from securetm.federation.coordinator.serving import CoordinatorFiles
from securetm.federation.courier.coordinator_end import served_by_courier
from securetm.federation.courier.journal import Paused
from securetm.federation.courier.party_end import carrier_of
from securetm.federation.courier.places import Place
from securetm.federation.folder import RESULT, alone_in
from securetm.federation.party.joining import Joining
from securetm.federation.party.reply_times import PacedParty, SystemClock
from securetm.federation.party.result import keep_result
from securetm.federation.party.status import JoinStatus
from securetm.plans.schema import Plan


@dataclass(frozen=True)
class Pass:
    took: int  # letters that were taken in
    number: int  # of the letter that was put out last
    awaited: tuple[str, ...]  # members whose letters are awaited
    troubles: Mapping[str, str]  # by member: why its letters are not read
    unread: int  # files there that this account may not read
    ended: Mapping[str, Any] | None = None  # what the run ended with
    trained: bool = False  # whether the coordinator has the model, and waits until the others have it

    def facts(self) -> dict[str, Any]:
        stated = {"taken": self.took, "letter": self.number, "awaited": list(self.awaited), "troubles": dict(self.troubles)}
        return {**stated, "unread": self.unread, "ended": self.ended is not None}


def pass_of_party(joining: Joining, place: Place, status: JoinStatus) -> Pass:
    """A pass of a party. Its session is on disk before and after."""
    stop = threading.Event()
    with (
        alone_in(joining.home.data),
        closing(joining.file.engine.make()) as engine,
        closing(PacedParty(joining.party(status, engine), SystemClock(stop))) as paced,
    ):
        carrier = carrier_of(joining, place, paced, status, once=True)
        took = int(carrier.one_pass(paced.handle, stop))
        ended = keep_result(paced.party, joining.facts()) if carrier.finished else None
        awaited = () if carrier.finished else (COORDINATOR,)
        return Pass(took, carrier.kept.number, awaited, carrier.box.troubles, len(carrier.box.unread), ended)


def pass_of_coordinator(plan: Plan, out: Path, files: CoordinatorFiles, place: Place, command: str) -> Pass:
    """A pass of the coordinator: as far as the letters that are there lead."""
    with served_by_courier(plan, out, files, place, command, once=True) as serving:
        parties, ended = serving.parties, None
        before = sum(parties.letters.passes.values())
        with suppress(Paused):
            ended = serving.run()
        took = sum(parties.letters.passes.values()) - before
        return Pass(
            took,
            parties.letters.number,
            parties.awaited if ended is None else (),
            parties.box.troubles,
            len(parties.box.unread),
            ended,
            (serving.folder.path / RESULT).is_file(),
        )
