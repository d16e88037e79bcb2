"""Writes the files of a federation for a trial on one machine: plan, parties with documents, keys, certificates, roster.

It plays all organisations at once, so whoever owns the folder owns them all. A real federation exchanges requests and rosters.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from securetm.contracts import Unit
from securetm.corpus.docstrings import some_docstrings
from securetm.credentials.acceptance import KEYS, accept
from securetm.credentials.authority import open_authority
from securetm.credentials.diagnosis import now_utc
from securetm.credentials.enrolment import new_keys
from securetm.credentials.issuing import Issuing
from securetm.credentials.key_files import Keys
from securetm.credentials.member_names import COORDINATOR, proposed_name
from securetm.credentials.roster import FederationRoster, check_address
from securetm.credentials.roster_file import write_roster
from securetm.federation.soundness import check_answerable
from securetm.plans.agreement import agree
from securetm.plans.profiles import read_profile
from securetm.private_files import private_folder, writing
from securetm.stages import Stages
from securetm.trial.trial_errors import TrialExists
from securetm.trial.trial_settings import LOCAL, TrialPlan, party_text

FEDERATION, DOCUMENTS, RUN = "trial", 400, "run"
PLAN, ROSTER, PARTY, HOME, TEXTS = "plan.toml", "roster.toml", "PARTY.toml", "home", "documents.jsonl"


@dataclass(frozen=True)
class TrialFolder:
    """The places of a trial."""

    path: Path
    parties: tuple[str, ...]

    @property
    def coordinator(self) -> Path:
        """The folder of the coordinator."""
        return self.path / COORDINATOR

    @property
    def plan(self) -> Path:
        """The coordinator's copy of the plan."""
        return self.coordinator / PLAN

    @property
    def run(self) -> Path:
        """The folder of the run, which the coordinator makes."""
        return self.coordinator / RUN

    def party(self, name: str) -> Path:
        """The folder of that party."""
        return self.path / "parties" / name

    def file(self, name: str) -> Path:
        """The PARTY.toml of that party."""
        return self.party(name) / PARTY

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """What is typed to run it, in one terminal each: the coordinator, then each party."""
        return (("serve", str(self.plan)), *(("join", str(self.file(name))) for name in self.parties))


def make_trial(path: Path, profile: str, rounds: int, stages: Stages, *, host: str = LOCAL, port: int = 0) -> TrialFolder:
    """Writes a whole trial into a folder that holds nothing yet. Without a port, one that is free now is taken."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise TrialExists(str(path))
    plan = TrialPlan(f"{host}:{port or free_port()}", profile, rounds, unit=_unit(profile))
    check_address(plan.address, "the command")
    agreement = agree(plan.recommended().plan)
    check_answerable(agreement, agreement.profile.minimum_parties)
    stages.stage("reading docstrings", 1)
    texts = {proposed_name(party): found for party, found in some_docstrings(DOCUMENTS).items()}
    trial = TrialFolder(path, tuple(sorted(texts)))
    private_folder(path)
    stages.stage("making keys and certificates", len(texts) + 1)
    roster = _enrolled(trial, plan.address, stages)
    for here in (trial.coordinator, *map(trial.party, trial.parties)):
        _write(here / PLAN, plan.text())
        write_roster(here / ROSTER, roster)
    for name in trial.parties:
        _write(trial.file(name), party_text(name, plan.profile, len(trial.parties)))
        _write(trial.party(name) / TEXTS, "".join(json.dumps({"text": text}) + "\n" for text in texts[name]))
    return trial


def _unit(profile: str) -> str:
    """The document, where the profile has a budget of documents: these name no persons. A budget of words says so itself."""
    budget = read_profile(profile).budget
    return Unit.DOCUMENT.value if budget is not None and budget.unit.whole_documents else ""


def free_port() -> int:
    """A port of this machine on which nobody listens now."""
    with socket.socket() as trying:
        trying.bind((LOCAL, 0))
        return int(trying.getsockname()[1])


def _enrolled(trial: TrialFolder, address: str, stages: Stages) -> FederationRoster:
    """Makes everybody's keys, and a roster that every party has signed and everybody has accepted."""
    homes = _homes(trial)
    requests = {}
    for done, (name, home) in enumerate(homes.items(), 1):
        private_folder(home.parent)
        requests[name] = new_keys(home, name)
        stages.step(done)
    now = now_utc()
    issuing = Issuing(now, authority=open_authority(homes[COORDINATOR], FEDERATION, None, now))
    first = issuing.first(FEDERATION, address, requests[COORDINATOR])
    roster = issuing.enrol(first, [requests[name] for name in trial.parties])
    for name in trial.parties:
        roster = roster.signed_by(name, Keys.open(homes[name] / KEYS))
    for home in homes.values():
        accept(home, roster)
    return roster


def _homes(trial: TrialFolder) -> Mapping[str, Path]:
    return {COORDINATOR: trial.coordinator / HOME, **{name: trial.party(name) / HOME for name in trial.parties}}


def _write(path: Path, text: str) -> None:
    with writing(path) as file:
        file.write(text.encode())
