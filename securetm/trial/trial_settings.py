"""The texts of a trial's files: a commented plan, and PARTY.toml. People read them, and change them for their own federation.

It writes no file.
"""

from __future__ import annotations

from dataclasses import dataclass

from securetm.credentials.strict_toml import quoted
from securetm.plans.profiles import cohort_of, read_profile
from securetm.plans.recommend import Recommendation, recommended
from securetm.plans.written import plan_text

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
        """The file of that plan."""
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
    cohort = cohort_of(chosen, tuple(f"party {n}" for n in range(parties)))
    least = chosen.aggregation.remaining(cohort, parties)
    return _aligned(_PARTY.format(least=least, **quotes))


def _aligned(text: str) -> str:
    """The text with the comments behind settings in one column."""
    return "".join(map(_line, text.splitlines()))


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
