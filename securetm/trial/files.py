"""The files of a federation for a trial on one machine: plan, parties with documents, keys, certificates, roster.

One command plays all organisations at once, so whoever owns the folder owns them all. A real federation exchanges requests and
rosters. People read the plan and PARTY.toml, and change them for their own federation.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path

from securetm.contracts import Unit
from securetm.corpus.docstrings import some_docstrings
from securetm.credentials.diagnosis import now_utc
from securetm.credentials.homes import KEYS, accept, new_keys
from securetm.credentials.issuing import Issuing, open_authority
from securetm.credentials.keys import Keys
from securetm.credentials.roster import COORDINATOR, FederationRoster, check_address, proposed_name, write_roster
from securetm.credentials.strict_toml import quoted
from securetm.data_classes import dataclass
from securetm.errors import Mistake
from securetm.federation.folder import check_lists
from securetm.federation.soundness import check_answerable
from securetm.plans.agreement import agree
from securetm.plans.profiles import cohort_of, read_profile
from securetm.plans.recommend import Recommendation, plan_text, recommended
from securetm.private_files import private_folder, writing
from securetm.stages import Stages

LOCAL = "127.0.0.1"
_COMMENTS = 32  # the column in which they begin


@dataclass(frozen=True)
class TrialPlan:
    """What somebody may choose of a trial; the rest is changed in its files."""

    address: str  # at which parties reach the coordinator
    profile: str = "masked"
    rounds: int = 40
    seed: int = 0
    unit: str = ""  # whom the privacy budget protects, if the profile has one

    def recommended(self) -> Recommendation:
        """The plan of all members. Only [coordinator] is not agreed on."""
        asked = {
            "seed": self.seed,
            "profile": self.profile,
            "model": {"name": "lda", "n_topics": 10},
            "vocabulary": {"max_words": 1500, "most_candidates": 20_000},
            "training": {"rounds": self.rounds},
            "privacy": {"unit": self.unit} if self.unit else {},
            "coordinator": {
                "listen": self.listen,
                "roster": "roster.toml",
                "keys": "home/keys",
                "out": "run",
                "deadline": 60,
                "patience": 600,
            },
        }
        return recommended(asked, "the trial")

    def text(self) -> str:
        said = {**_SAID, "profile": f"what is protected, and from whom: securetm explain {self.profile}"}
        return plan_text(self.recommended(), said, _HEAD)

    @property
    def listen(self) -> str:
        """Where the coordinator listens: at this machine's own address only, if parties reach it there."""
        host, _, port = self.address.rpartition(":")
        return self.address if host == LOCAL else f"0.0.0.0:{port}"


def party_text(name: str, profile: str, parties: int) -> str:
    """The PARTY.toml of one party of the trial."""
    quotes = {"name": quoted(name), "identity": quoted(f"{name}-docstrings"), "profile": quoted(profile)}
    chosen = read_profile(profile)
    cohort = cohort_of(chosen, parties)
    least = chosen.aggregation.remaining(cohort, parties)
    return "".join(map(_line, _PARTY.format(least=least, **quotes).splitlines()))


def _line(text: str) -> str:
    setting, behind, comment = text.partition("  # ")
    return f"{setting:<{_COMMENTS - 2}}  # {comment}\n" if behind else f"{text}\n"


_HEAD = (
    "The plan of a federation. Every member has its own copy, and joins a session only if the plan is the same, word for word",
    "of what decides the model; comments and the last section may differ.",
)
_SAID = {
    "seed": "public: it decides batches and how the model begins",
    "vocabulary.max_words": "the most frequent ones are kept",
    "vocabulary.min_documents": "of all parties together, in which a word must be",
    "vocabulary.most_candidates": "words of all parties together that there is room for, at 144 bytes from every party",
    "training.rounds": "at most",
    "privacy.unit": "whom the budget protects; epsilon and delta are the profile's, unless they stand here",
    "coordinator": "how the coordinator is run. Nobody agrees on it, and parties do not read it",
    "coordinator.listen": "0.0.0.0:PORT is every address of this machine",
    "coordinator.roster": "who takes part, with which keys",
    "coordinator.out": "the folder of the run; `securetm serve plan.toml` again goes on with it",
    "coordinator.deadline": "seconds for one message of a party",
    "coordinator.survivors": "parties that a round needs: all, or a number",
    "coordinator.patience": "seconds to wait for a party that is missing",
}

_PARTY = """\
# What one organisation brings to a federation, and what it allows there. Nobody else reads this file.
# Paths are relative to the folder that it lies in.

name = {name}  # as in the roster
roster = "roster.toml"  # who takes part; `securetm keys accept` has accepted it
plan = "plan.toml"  # your own copy: nothing is answered that is not in it
home = "home"  # keys, ledgers, results: for your account alone, and worth a backup

[data]
source = "documents.jsonl"  # a file or a folder: .jsonl, .csv, .parquet, .txt
identity = {identity}  # your own name for these documents; ledger and counters belong to it

[policy]  # what is refused of what a coordinator asks of these documents, whatever the plan says
profiles = [{profile}]
models = ["lda"]
least_parties = {least}  # in every opened sum with your documents, whoever drops out
# questions = ["joint", "train"]  # that may run on your documents; all of the plan's, if not given
# coordinators = ["12345 12345 ..."]  # fingerprints of who may coordinate (securetm keys show)
# unit = "document"  # that a budget has to protect; profiles without a bound are then allowed by name only, in `profiles`
# most_epsilon = 8.0  # that one run under a budget may spend of each such unit; `unit` has to stand beside it

# [privacy]  # the budget of these documents, over all runs and federations
# epsilon = 8.0
# delta = 1e-6

# [engine]  # what computes your answers: no other party can tell
# kind = "pool"  # processes on this machine
# workers = 2
"""


# ---- the folder -----------------------------------------------------------------------------------------------------


FEDERATION, DOCUMENTS, RUN = "trial", 400, "run"
PLAN, ROSTER, PARTY, HOME, TEXTS = "plan.toml", "roster.toml", "PARTY.toml", "home", "documents.jsonl"
LETTERS = "letters"  # for a trial by courier


@dataclass(frozen=True)
class TrialFolder:
    path: Path
    parties: tuple[str, ...]

    @property
    def coordinator(self) -> Path:
        return self.path / COORDINATOR

    @property
    def plan(self) -> Path:
        return self.coordinator / PLAN

    @property
    def run(self) -> Path:
        return self.coordinator / RUN

    def party(self, name: str) -> Path:
        return self.path / "parties" / name

    def file(self, name: str) -> Path:
        return self.party(name) / PARTY

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """What is typed to run it, in one terminal each: the coordinator, then each party."""
        return (("serve", str(self.plan)), *(("join", str(self.file(name))) for name in self.parties))


def make_trial(path: Path, profile: str, rounds: int, stages: Stages, *, host: str = LOCAL, port: int = 0) -> TrialFolder:
    """Writes a whole trial into a folder that holds nothing yet. Without a port, one that is free now is taken."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise Mistake(
            "{path} is there already, and a trial would be mixed with what is in it",
            hint="name a folder that is empty or not there yet: securetm init FOLDER",
            path=str(path),
        )
    plan = TrialPlan(f"{host}:{port or free_port()}", profile, rounds, unit=_unit(profile))
    check_address(plan.address, "the command")
    agreement = agree(plan.recommended().plan)
    check_answerable(agreement, agreement.profile.minimum_parties)
    check_lists(agreement)  # what this installation cannot run is not written
    stages.stage("reading docstrings", 1)
    texts = {proposed_name(party): found for party, found in some_docstrings(DOCUMENTS).items()}
    trial = TrialFolder(path, tuple(sorted(texts)))
    private_folder(path / LETTERS)
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
    homes = {COORDINATOR: trial.coordinator / HOME, **{name: trial.party(name) / HOME for name in trial.parties}}
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


def _write(path: Path, text: str) -> None:
    with writing(path) as file:
        file.write(text.encode())
