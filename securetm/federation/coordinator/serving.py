"""A coordinator that serves parties which come and go: it waits for them, and runs session after session to the model.

Every session goes on from the last checkpoint, in this process or in the next one over the same folder. That folder is read
like the one of a simulated run; what only parties know is not there, and null in its result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from securetm.contracts.origin import Origin
from securetm.credentials.diagnosis import check_own, now_utc, said_of_build
from securetm.credentials.homes import KEYS, check_accepted
from securetm.credentials.issuing import AUTHORITY, authority_pem
from securetm.credentials.keys import Keys, Passphrase
from securetm.credentials.roster import COORDINATOR, FederationRoster, read_roster
from securetm.data_classes import dataclass, field, replace
from securetm.data_homes import data_home
from securetm.entropy import OperatingSystem
from securetm.errors import Failed, Mistake, SecuretmError, TooFewParties
from securetm.federation.budget.prices import PlannedSpending
from securetm.federation.coordinator.coordinator import Coordinator, Trained, coordinator_of
from securetm.federation.coordinator.rounds import Attendance, NewSessionWanted, PartiesMissing
from securetm.federation.coordinator.run_result import run_result, write_result
from securetm.federation.coordinator.status import FINISHED, HANDING_OUT, STOPPED, WAITING, EventLog, RunStatus
from securetm.federation.coordinator.training import CHECKPOINT, rounds_kept
from securetm.federation.document_minimum import check_delta, others_hold
from securetm.federation.folder import (
    KEPT,
    LEDGERS,
    LOG,
    RESULT,
    RUN,
    RunFolder,
    alone_in,
    bind,
    check,
    check_free,
    check_lists,
    reopen,
    result_of,
    write_record,
)
from securetm.federation.network.events import Agreed
from securetm.federation.network.hub import Hub
from securetm.federation.origins import Beginning, before_by_name, product_of, run_between_organisations
from securetm.federation.release import release
from securetm.federation.soundness import agreed_apart, check_survivors
from securetm.federation.store import CoordinatorStore, read_json
from securetm.federation.transcript import Parties, Transcript, WorkTimer
from securetm.plans.agreement import Agreement
from securetm.plans.schema import ALL, CoordinatorChoice, Plan
from securetm.private_files import private_folder
from securetm.sessions.survivors import SurvivorsMissing, TooFewDocuments
from securetm.settings import require
from securetm.stages import Unwatched


@dataclass(frozen=True)
class CoordinatorFiles:
    keys: Keys
    roster: FederationRoster
    authorities: tuple[bytes, ...]  # certificates in PEM: one, or none

    @classmethod
    def read(
        cls,
        choice: CoordinatorChoice,
        beside: Path,
        passphrase_of: Callable[[Path], Passphrase | None],
        *,
        connects: bool = True,
    ) -> CoordinatorFiles:
        """Reads the files that [coordinator] of the plan in that folder names.

        Who does not connect needs no certificate that is valid now.
        """
        folder = beside / choice.keys if choice.keys else data_home() / COORDINATOR / KEYS
        problem = f"must be the folder `{KEYS}` of the coordinator's home"
        require(folder.name == KEYS, "[coordinator]", "keys", choice.keys, problem)
        roster = read_roster(beside / choice.roster)
        check_accepted(folder.parent, roster)
        keys = Keys.open(folder, passphrase_of(folder))
        check_own(COORDINATOR, keys, roster, now_utc() if connects else None)
        said_of_build(roster)
        return cls(keys, roster, (authority_pem(folder.parent),) if (folder.parent / AUTHORITY).is_dir() else ())


@contextmanager
def operated(
    plan: Plan, out: Path, files: CoordinatorFiles, command: str, *, with_content: bool = False, beside: TextIO | None = None
) -> Iterator[Serving]:
    """Listens for the parties of this roster, until its block ends. The parties are told whether the run has ended."""
    choice, roster = plan.coordinator, files.roster
    folder, status = opened(plan, out, files, with_content=with_content, beside=beside)
    agreement = folder.agreement
    agreed = Agreed(agreement.digest, agreement.profile.digest)
    where = folder.path / "spool", choice.listen
    hub = Hub(files.keys, roster, agreed, *where, status, files.authorities, pulse=folder.path)
    ended = False
    port = hub.start()
    try:
        status.address = f"{choice.listen.rpartition(':')[0]}:{port}"
        parties = hub.parties(choice.deadline)
        serving = Serving(folder, parties, status, choice, command, parties.arrivals, parties.late)
        status.log.write("started", run=status.run, address=status.address, round=status.done)
        yield serving
        ended = True
    finally:
        hub.close(finished=ended)


def opened(
    plan: Plan, out: Path, files: CoordinatorFiles, *, with_content: bool = False, beside: TextIO | None = None
) -> tuple[RunFolder, RunStatus]:
    """The folder of the run that this roster's parties train, and its status; `beside` gets the lines of its log too."""
    roster, agreement = files.roster, agreed_apart(plan, files.roster.members)
    check_delta("the roster", others_hold("", roster.holds, agreement.profile, roster.members), agreement.profile)
    if plan.coordinator.survivors != ALL:
        check_survivors(agreement, len(roster.members), int(plan.coordinator.survivors))
    folder = served_folder(out, agreement, roster.federation, roster.keys, with_content=with_content)
    folder = replace(folder, holds=dict(roster.holds))
    log, spending = EventLog(folder.path / LOG, beside), PlannedSpending(agreement, len(folder.members))
    name, model = folder.path.resolve().name, agreement.plan.model.name
    return folder, RunStatus(name, model, agreement.profile.name, folder.members, log, spending.after)


class NoProgress(SecuretmError):
    """no round ended within {seconds} seconds and {sessions:session|sessions}; the last one failed: {problem}"""

    seconds: int
    sessions: int
    problem: str
    command: str
    hint = "`serve.jsonl` in the run's folder says which party did what; mend it and go on with `{command}`"


class AnswersTooLate(SecuretmError):
    """the answers of {parties} came after the deadline of {deadline} seconds, again and again"""

    parties: str
    deadline: str
    enough: str
    command: str
    hint = (
        "under a budget answers leave at a fixed interval, which is long on a slow machine: write deadline = {enough} under "
        "[coordinator] of the plan, and go on with `{command}`; nothing is lost, and nothing is paid twice"
    )


class TooFewCame(SecuretmError):
    """{missing} did not come within {seconds} seconds ({came} of {of} parties are connected); {refused}"""

    missing: str
    seconds: int
    came: int
    of: int
    refused: str
    command: str
    hint = (
        "ask these parties what `securetm join` says; then go on with `{command}`. With `survivors` under [coordinator] a run "
        "goes on without parties that are missing, and with `patience` it waits longer"
    )


UNKNOWN = (
    "useful", "baseline", "control", "alone", "shared_at_party", "adapted_at_party", "topics_alone", "comparison", "prevalence",
    "documents", "source", "dropped", "not_finite",
)  # fmt: skip
_PAUSE = 1.0  # seconds before another session, after one without a round
_LONGEST_PAUSE = 30.0


@dataclass
class Serving:
    """One run, from the first party that comes to the last one that has the model."""

    folder: RunFolder
    parties: Parties
    status: RunStatus
    choice: CoordinatorChoice
    command: str  # that goes on with the run
    arrivals: Mapping[str, float] = field(default_factory=dict)  # seconds after its request, of each party's last reply
    late: dict[str, list[float]] = field(default_factory=dict)  # the same of replies after the deadline, since a round was kept
    _failed: int = 0  # sessions since a round was kept
    _failing: float = 0.0  # since when, without the time in which parties were missing

    def __post_init__(self) -> None:
        everyone = self.choice.survivors == ALL
        self.attendance = Attendance(everyone=True) if everyone else Attendance(fewest=int(self.choice.survivors))
        self.status.of = self.folder.agreement.plan.training.rounds
        self.status.done = rounds_kept(self.folder.coordinator)

    def run(self) -> dict[str, Any]:
        """Trains, or goes on with the training, and hands out the model. A run that had ended hands it to who comes late."""
        with alone_in(self.folder.path):
            try:
                return self._run()
            except KeyboardInterrupt as stop:
                self.status.enters(STOPPED)
                kept = rounds_kept(self.folder.coordinator)
                self.status.log.write("stopped", round=kept, reason="asked to")
                raise Failed(
                    "the coordinator was stopped after round {rounds}; nothing is lost",
                    hint=(
                        "go on with `{command}`: the parties connect again by themselves, and training goes on from the last "
                        "kept round"
                    ),
                    rounds=kept,
                    command=self.command,
                ) from stop
            except Exception as problem:
                self.status.log.write("failed", error=type(problem).__name__)
                raise

    def _run(self) -> dict[str, Any]:
        if (self.folder.path / RESULT).is_file():
            result = result_of(self.folder.path)
            has_model = self._sees_the_model and result["rounds"]
            check(self.folder.path, *([self.folder.model] if has_model else []), self.folder.words)
            self._hand_out_late(result["rounds"])
        else:
            before = self._ended_before()
            result = self._kept_result(before)
            if before is not None:  # the parties may not have been told
                self._hand_out_late(before.rounds)
        self.status.enters(FINISHED)
        self.status.log.write("finished", rounds=result["rounds"], seconds=result["seconds"])
        return result

    def _ended_before(self) -> Trained | None:
        """What a coordinator ended with that was killed before it wrote the result."""
        with self._coordinator() as coordinator:
            return coordinator.ended_before()

    @property
    def _sees_the_model(self) -> bool:
        return self.folder.agreement.profile.aggregation.opened_by == "coordinator"

    # ---- training ------------------------------------------------------------------------------------------------------

    def _kept_result(self, before: Trained | None) -> dict[str, Any]:
        with WorkTimer(Transcript(self.folder.path / "transcript"), Unwatched()) as timer:
            trained = before or self._trained()
            if trained.rounds and self._sees_the_model:
                made = self.folder.agreement.model, trained.state, trained.vocabulary
                release(self.folder.path, *made, origin_of_served(self.folder))
            result = served_result(self.folder, trained, timer, self.status.spent)
        write_result(self.folder, result)
        self.status.log.write("trained", rounds=trained.rounds, stopped=trained.stopped)
        return result

    def _trained(self) -> Trained:
        kept = rounds_kept(self.folder.coordinator)
        while True:
            self._await_parties()
            ended = self._session()
            if isinstance(ended, Trained):
                return ended
            if (now := rounds_kept(self.folder.coordinator)) > kept or isinstance(ended, NewSessionWanted):
                kept, self._failed = now, 0
                self.late.clear()
            else:
                self._pause_after(ended)

    def _pause_after(self, problem: Exception) -> None:
        """Waits before another session, after one without a round, or stops by name if sessions have failed for too long.

        That time begins with the first failure: how long its answers took before it is no sign of one. It has no part in which
        parties were waited for.
        """
        late = {name: max(seconds) for name, seconds in sorted(self.late.items()) if len(seconds) > 1}
        if late and self.folder.agreement.budget is not None:  # late twice, and the interval never becomes shorter
            enough = 2 ** math.ceil(math.log2(max(late.values())))  # intervals are powers of two
            raise AnswersTooLate(", ".join(late), f"{self.choice.deadline:g}", f"{enough:g}", self.command)
        self._failed += 1
        if self._failed == 1:
            self._failing = time.monotonic()
            return
        if time.monotonic() - self._failing > self.choice.patience:
            reasons = self.status.reasons(self.folder.members)
            said = f"{problem} ({reasons})" if reasons else str(problem)
            raise NoProgress(round(self.choice.patience), self._failed, said, self.command)
        # A party that breaks every session must not keep everybody busy.
        time.sleep(min(_PAUSE * 2 ** (self._failed - 2), _LONGEST_PAUSE, self.choice.patience))

    def _session(self) -> Trained | Exception:
        """Runs one session. Returns the model, or why the session ended before it."""
        self.status.begins_session(rounds_kept(self.folder.coordinator), self.folder.agreement.plan.training.rounds)
        try:
            with self._coordinator() as coordinator:
                return coordinator.run()
        except (PartiesMissing, SurvivorsMissing, TooFewDocuments, TooFewParties, NewSessionWanted) as problem:
            missing = problem.names if isinstance(problem, PartiesMissing) else ""
            missing = problem.missing if isinstance(problem, SurvivorsMissing) else missing
            reason = type(problem).__name__
            self.status.log.write("session_ended", session=self.status.session, reason=reason, missing=missing)
            return problem

    def _coordinator(self) -> AbstractContextManager[Coordinator]:
        here = not self.attendance.everyone
        return coordinator_of(
            self.folder, self.parties, self.attendance, arrivals=self.arrivals, told=self.status, only_present=here
        )

    def _await_parties(self) -> None:
        """Waits for all parties: as long as the run has patience, or for a while if it is under way and can do without.

        At its beginning a run waits for everybody, because its words are those of the parties that are there then.
        """
        members, begun = frozenset(self.folder.members), time.monotonic()
        under_way = self.status.session or (self.folder.coordinator / f"{CHECKPOINT}.safetensors").is_file()
        patience = self.choice.patience
        grace = min(self.choice.grace, patience) if under_way and not self.attendance.everyone else patience
        enough = len(members)
        if not self.attendance.everyone:
            enough = max(self.attendance.fewest, self.folder.agreement.profile.minimum_parties)
        if not members <= self.parties.present():
            self.status.enters(WAITING)
            self._wait_for(len(members), grace)
        if len(self.parties.present() & members) < enough:
            self._wait_for(enough, patience - (time.monotonic() - begun))
        self._failing += time.monotonic() - begun
        here = self.parties.present() & members
        if len(here) < enough:
            said = self.status.reasons(members - here) or "nobody was refused"
            names = ", ".join(sorted(members - here))
            raise TooFewCame(names, round(patience), len(here), len(members), said, self.command)

    def _wait_for(self, parties: int, seconds: float) -> None:
        members = frozenset(self.folder.members)
        if seconds <= 0:
            return
        missing = ", ".join(sorted(members - self.parties.present()))
        self.status.log.write("waiting", missing=missing, seconds=round(seconds, 1))
        self.status.waits(lambda: len(members & self.parties.present()) >= parties, seconds)

    # ---- the finished model --------------------------------------------------------------------------------------------

    def _hand_out_late(self, rounds: int) -> None:
        """Hands the model of a run that has ended to parties that do not have it, as they come, until it has waited long."""
        end = time.monotonic() + self.choice.patience
        refused: frozenset[str] = frozenset()  # took no model though they are there
        while (late := self._without_model() - refused) and (left := end - time.monotonic()) > 0:
            self.status.enters(WAITING)
            if not self.status.waits(partial(self._here, late), left):
                return
            self.status.enters(HANDING_OUT)
            asked = self._here(late)
            refused |= asked - self._handed_out(rounds, asked)

    def _here(self, names: frozenset[str]) -> frozenset[str]:
        return names & self.parties.present()

    def _without_model(self) -> frozenset[str]:
        with closing(CoordinatorStore(self.folder.coordinator)) as store:
            return frozenset(self.folder.members) - store.handed_out()

    def _handed_out(self, rounds: int, late: frozenset[str]) -> frozenset[str]:
        with self._coordinator() as coordinator:
            taken = coordinator.hand_out_again(rounds, sorted(late))
        for name in taken:
            self.status.log.write("handed_out", party=name)
        return frozenset(taken)


def served_folder(
    path: Path, agreement: Agreement, federation: str, keys: Mapping[str, bytes], *, with_content: bool = False
) -> RunFolder:
    """Opens the run in this folder if it is of the same federation and agreement; makes a new one if there is none.

    Members and their keys are those of the present roster: a party may have come, left, or changed its keys.
    """
    if not (path / KEPT).is_file() or not (path / RUN).is_file():
        if not (path / "coordinator").exists():  # killed before it had begun
            (path / RUN).unlink(missing_ok=True)
        check_free(path)
        check_lists(agreement)
        private_folder(path)
        name = f"{path.resolve().name} {OperatingSystem().bytes(4).hex()}"
        folder = RunFolder(path, agreement, tuple(keys), with_content, dict(keys), name, path / LEDGERS)
        write_record(folder, {"federation": federation})
        bind(path, [path / RUN])
        return folder
    folder = reopen(path, str(agreement.plan.model.settings.get("module", "")))
    same = {
        "plan": folder.agreement.digest == agreement.digest,
        "profile": folder.agreement.profile.digest == agreement.profile.digest,
        "federation": read_json(path / RUN).get("federation") == federation,
    }
    for what, fits in same.items():
        if not fits:
            raise Mistake(
                "{path} holds a run under another {what} than the one that was given",
                hint='give the plan that the run began with, or another folder: [coordinator] out = "..." begins a new run',
                path=str(path),
                what=what,
            )
    return replace(folder, agreement=agreement, members=tuple(keys), keys=dict(keys))


def origin_of_served(folder: RunFolder) -> Origin:
    """The origin of what this federation learned: no party spends more than the run's budget."""
    run = run_between_organisations(str(read_json(folder.path / RUN)["federation"]), folder.agreement)
    return product_of(folder.agreement, run, folder.members)


def served_result(
    folder: RunFolder, trained: Trained, timer: WorkTimer, spent: Callable[[int], Mapping[str, Any] | None]
) -> dict[str, Any]:
    """Returns what the coordinator may know of a finished run. Where parties keep the model, it has no topics."""
    seen = trained.rounds > 0 and folder.agreement.profile.aggregation.opened_by == "coordinator"
    began = Beginning.under(folder.agreement, trained.vocabulary if seen else ())
    each: list[dict[str, Any]] = []  # what this run spent of each party's budget by its plan; the parties' ledgers are not here
    for name in folder.members:
        if (planned := spent(trained.rounds)) is None:
            each.append({"party": name, "unit": "document", "epsilon": None, "delta": None})
        else:
            own = {"party": name, **planned, **planned.get("own", {})}
            each.append(before_by_name(folder.agreement, name).added_to(own))
    told = run_result(folder, trained, timer, began, each, origin_of_served(folder), seen=seen)
    return {**dict.fromkeys(UNKNOWN), **told}
