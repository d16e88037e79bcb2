"""Audit plans: which attack tries which claim of which profiles, how hard, and what counts as refuted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from securetm.auditing.attacks import attack_names, declared
from securetm.contracts import ThreatModel
from securetm.data_classes import dataclass, field
from securetm.errors import NotFound
from securetm.resources import named_toml, toml_names
from securetm.settings import Limit, from_table, placed, read_toml, require, within
from securetm.threats import read_threat_model

ROUNDS = "rounds"
MOST_EFFORT, MOST_MADE = 2_000_000, 10_000  # larger numbers would take days, or all memory
MOST: Mapping[str, int] = {"shadows": 1_000}
Made = Annotated[int, within(0, MOST_MADE)]


@dataclass(frozen=True)
class Trial:
    """One attack on one claim. `expect_fail` is the baseline; a trial that does not break it proves nothing."""

    attack: str
    threat_model: str
    adversary: str
    claim: str
    profiles: tuple[str, ...]
    measure: str
    refuted_from: Annotated[float, Limit(lambda share: 0 < share <= 1, "must lie above 0 and not above 1")]
    effort: dict[str, int]
    expect_fail: str = "open"
    confidence: Annotated[float, Limit(lambda share: 0.5 <= share < 1, "must be at least 0.5 and below 1")] = 0.95
    run: dict[str, Any] = field(default_factory=dict)  # settings of the runs that are made for it
    helpers: Made = 0  # this many parties, the last ones, give the adversary all they hold
    canaries: Made = 0  # documents made for each party; each is added to its own with probability 1/2
    without: Made = 0  # a second run is made without this many parties, the first ones
    liars: Made = 0  # this many parties, the first ones, send what the attack makes instead of their answers
    network: bool = False  # a real network on this machine carries the messages of its runs
    meddled: Made = 0  # in this many rounds, the first ones, the coordinator sends states that the attack makes


@dataclass(frozen=True)
class AuditPlan:
    """What an audit will do, fixed before it begins."""

    name: str
    title: str
    trials: tuple[Trial, ...]
    not_tried: tuple[str, ...] = ()  # what its author left out on purpose
    refusals: tuple[str, ...] = ()  # profiles whose minimum of documents is tried
    moves: tuple[str, ...] = ()  # profiles in whose runs the coordinator violates the protocol
    file: str = ""  # where it was read, as it was named; empty of a plan that comes with securetm

    @property
    def profiles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(profile for trial in self.trials for profile in trial.profiles))


@dataclass(frozen=True)
class _Text:
    name: str
    title: str
    trial: tuple[dict[str, Any], ...]
    not_tried: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()
    runs: dict[str, Any] = field(default_factory=dict)  # settings of runs that several trials share, by name


def audit_plan_names() -> tuple[str, ...]:
    return toml_names("audits", "plans")


def read_audit_plan(name: str | Path, threats: Callable[[str], ThreatModel] | None = None) -> AuditPlan:
    """The audit plan of that name, or in that file, checked. `threats` reads a threat model."""
    path = named_toml("audits", str(name), below="plans", kind="audit plan")
    known = threats or cache(read_threat_model)  # many trials name the same one
    with placed(path):
        text, where = from_table(_Text, read_toml(path), path.name), path.name
        require(text.name == path.stem, where, "name", text.name, "must be the name of its file")
        require(bool(text.trial), where, "trial", None, "a plan tries something")
        numbered = ((part, f"{where}, [[trial]] number {n}") for n, part in enumerate(text.trial, start=1))
        trials = tuple(_trial(part, text.runs, place, known) for part, place in numbered)
        _check_profiles((*text.refusals, *text.moves))
    file = "" if str(name) in audit_plan_names() else str(name)
    return AuditPlan(text.name, text.title, trials, text.not_tried, text.refusals, text.moves, file)


def _trial(part: Mapping[str, Any], runs: Mapping[str, Any], where: str, threats: Callable[[str], ThreatModel]) -> Trial:
    """One trial, checked. It may take the settings of its run from [runs] by name."""
    if isinstance(run := part.get("run"), str):
        require(run in runs, where, "run", run, known=tuple(runs))
        part = {**part, "run": runs[run]}
    trial = from_table(Trial, part, where)
    if trial.attack not in attack_names():
        raise NotFound("attack", trial.attack, attack_names())
    feared = threats(trial.threat_model)
    names = tuple(adversary.name for adversary in feared.adversaries)
    require(trial.adversary in names, where, "adversary", trial.adversary, known=names)
    most = feared.adversary(trial.adversary).colludes_with_parties
    require(trial.helpers <= most, where, "helpers", trial.helpers, f"must be at most {most}, as many as {feared.name} fears")
    asked = [wanted.claim.what for wanted in feared.requires if wanted.claim.against == trial.adversary]
    accepted = [what for what, _ in feared.accepts]
    problem = f"is neither required against {trial.adversary} nor accepted in {feared.name}"
    require(trial.claim in (*asked, *accepted), where, "claim", trial.claim, problem)
    _check_profiles((*trial.profiles, trial.expect_fail))
    require(len(set(trial.profiles)) == len(trial.profiles), where, "profiles", trial.profiles, "names a profile twice")
    baseline = "must be one of the profiles tried"
    require(trial.expect_fail in trial.profiles, where, "expect_fail", trial.expect_fail, baseline)
    require(ROUNDS in trial.effort, f"{where} effort", ROUNDS, None)
    for name, amount in trial.effort.items():
        most = MOST.get(name, MOST_EFFORT)
        require(0 < amount <= most, f"{where} effort", name, amount, f"must be a whole number from 1 to {most:,}")
    return trial


def _check_profiles(names: Iterable[str]) -> None:
    known = toml_names("protocols", "profiles")
    for profile in names:
        if profile not in known:
            raise NotFound("profile", profile, known)


# ---- tests of an epsilon: each is corrected for their number in a plan ------------------------------------------------


def count_of_tests(trials: Iterable[Trial]) -> int:
    """How many claims of an epsilon these trials test: one on each profile with a budget, except the baseline."""
    return sum(
        _claim_epsilon(name) for trial in trials if of_epsilon(trial) for name in trial.profiles if name != trial.expect_fail
    )


def of_epsilon(trial: Trial) -> bool:
    """Whether the trial tests differential privacy, with an attack that declares what an epsilon allows."""
    from securetm.mechanisms.noising import PRIVATE  # its import takes longer than the answer

    return trial.claim == PRIVATE and declared(trial.attack, "allowed") is not None


@cache
def _claim_epsilon(profile: str) -> bool:
    from securetm.plans.profiles import read_profile  # with all mechanisms

    return read_profile(profile).budget is not None
