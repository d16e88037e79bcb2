"""Carries out audit plans: every trial first on the unprotected baseline, then on runs that claim protection.

A plan is carried out on a recorded run, or on runs that are made for it; then only as far as kept evidence is missing or stale.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it

from securetm.answers.block_answers import IN_PROCESS
from securetm.auditing.attacks import attack_called
from securetm.auditing.bindings import TRIAL, refusals_bound_to, trial_hash
from securetm.auditing.evidence import (
    BELOW,
    FOLDER,
    VIOLATIONS,
    Evidence,
    KeptRefusals,
    due_refusals,
    lists_with,
    read_all_evidence,
    read_all_refusals,
    remaining,
    to_keep,
    today,
    trials_by_hash,
    write_evidence,
    write_refusals,
)
from securetm.auditing.given_run import Unfinished, audit_of_run, check_finished, crew_of
from securetm.auditing.plans import ROUNDS, AuditPlan, Trial, count_of_tests, of_epsilon, read_audit_plan
from securetm.auditing.record import Audit, Finding
from securetm.auditing.refusals import tried_below_minimum, tried_violations
from securetm.auditing.runs import Demonstrations, check_runs, place_for
from securetm.auditing.trials import attack_texts, findings, how_again, is_for, left_out
from securetm.auditing.verdicts import with_baseline
from securetm.data_classes import dataclass, field
from securetm.errors import Mistake
from securetm.federation.folder import RunFolder, reopen
from securetm.plans.profiles import read_profile
from securetm.settings import require
from securetm.stages import Stages, Unwatched
from securetm.version import __version__


def audit(
    plan: str | Path | AuditPlan,
    run: str | Path | None = None,
    *,
    evidence: Path | None = None,
    keep: Path | None = None,
    stages: Stages | None = None,
    minutes: float | None = None,
    kept: Unfinished | None = None,
    workers: int = 0,
) -> Audit:
    """Carries out a plan. Without `run` it makes its own runs; with one, it tries that run and baselines of its documents.

    `evidence` is a folder of kept results: what is there and fresh is not made again, and what is made is kept there at once.
    `keep` is a folder for the runs that are made; without one they are deleted. Trials on a given run begin with what takes
    least, and none begins that would end after so many `minutes`; `kept` holds what an interrupted audit of it found. So many
    `workers` make the trials (0: one, and of a given run one for each core, at most four).
    """
    plan = plan if isinstance(plan, AuditPlan) else read_audit_plan(plan)
    begun, stages = time.perf_counter(), stages or Unwatched()
    if run is None:
        check_plan(plan)
        return _on_own_runs(plan, evidence, keep, stages, workers or 1, begun)
    given = reopen(Path(run))
    trials = tuple(trial for trial in plan.trials if is_for(trial, given))
    if not trials:
        raise Mistake(
            "no attack of the plan {plan!r} is made for the model {model} of {path}",
            hint="choose another plan, or leave --run away: then the audit makes the runs that it needs",
            plan=plan.name,
            model=given.agreement.plan.model.name,
            path=str(given.path),
        )
    check_finished(given)
    check_plan(plan, given)
    return audit_of_run(plan, given, trials, keep, stages, minutes, kept, workers, begun)


def check_plan(plan: AuditPlan, given: RunFolder | None = None) -> None:
    """Refuses a plan whose attacks or runs cannot be made, before anything is trained."""
    for number, trial in enumerate(plan.trials, start=1):
        if given is not None and not is_for(trial, given):
            continue
        attack, where = attack_called(trial.attack), f"the trial of {trial.attack}"
        require(trial.measure in attack.measures, where, "measure", trial.measure, known=tuple(attack.measures))
        for name in attack.efforts:
            require(name in trial.effort, f"{where}, effort", name, None)
        for name, amount in trial.effort.items():
            known = (ROUNDS, *attack.efforts)
            require(
                name in known, f"{where}, effort", name, amount, f"is no effort of this attack, which has {', '.join(known)}"
            )
        for budget in (read_profile(name).budget for name in trial.profiles):
            if attack.allowed is not None and budget is not None and of_epsilon(trial):
                attack.allowed(trial.measure, budget)  # raises the reason if it cannot test this claim
        if given is None:  # what cannot be tried on a given run is left out of its audit, and named
            check_runs(trial, f"{plan.name}.toml, [[trial]] number {number}")


# ---- runs of its own: in pieces that share no run, so that each can be kept before the next begins, and made anywhere ----


@dataclass(frozen=True)
class Piece:
    """Trials that share runs, or one profile whose parties must refuse what the plan lists."""

    place: str  # below the folder of runs that are kept
    trials: tuple[Trial, ...] = ()
    profile: str = ""

    @property
    def timed(self) -> bool:
        """Whether an attack reads a clock, which must not tell what other pieces this machine works on."""
        return any(trial.network for trial in self.trials)


def pieces(trials: Iterable[Trial], profiles: Iterable[str] = ()) -> tuple[Piece, ...]:
    """The trials that share runs together, and each profile whose refusals are tried."""
    parts: dict[str, list[Trial]] = {}
    for trial in trials:
        parts.setdefault(repr((sorted(trial.run.items(), key=str), trial.canaries)), []).append(trial)
    alone = len(parts) == 1
    tried = (Piece("" if alone else f"part-{n}", tuple(part)) for n, part in enumerate(parts.values(), start=1))
    return (*tried, *(Piece(f"refusals/{profile}", profile=profile) for profile in profiles))


@dataclass
class _OnOwnRuns:
    """Makes the runs of a piece, and its findings or refusals of them: the same in whichever process and order."""

    plan: AuditPlan
    keep: Path | None
    stages: Stages
    corpora: dict[str, Any] = field(default_factory=dict)  # the parties' documents, by their source

    def __call__(self, piece: Piece) -> tuple[Finding, ...] | KeptRefusals:
        own = None if self.keep is None else self.keep / piece.place
        with place_for(own) as place, threadpool_limits(1):  # threads of linear algebra wait for themselves on busy cores
            runs = Demonstrations(place, self.stages, corpora=self.corpora)
            if piece.profile:
                return self._refusals(piece.profile, runs)
            tests = count_of_tests(self.plan.trials)
            return tuple(finding for trial in piece.trials for finding in findings(trial, runs, None, tests))

    def _refusals(self, profile: str, runs: Demonstrations) -> KeptRefusals:
        plan, bound, begun = self.plan, refusals_bound_to(profile), time.perf_counter()
        listed = lists_with(profile, plan)
        below = tried_below_minimum(profile, runs) if BELOW in listed else ()
        violations = tried_violations(profile, runs) if VIOLATIONS in listed else ()
        seconds = round(time.perf_counter() - begun, 1)
        return KeptRefusals(
            profile, plan.name, listed, (*below, *violations), seconds, today(), platform.python_version(), bound
        )


def _on_own_runs(plan: AuditPlan, folder: Path | None, keep: Path | None, stages: Stages, workers: int, begun: float) -> Audit:
    """What is missing or stale is made, and kept piece by piece; every result of the plan is in the audit."""
    kept: tuple[Evidence, ...] = ()
    refused: dict[str, KeptRefusals] = {}
    due: tuple[str, ...] = tuple(dict.fromkeys((*plan.refusals, *plan.moves)))
    if folder is not None:
        for old in read_all_refusals(folder):  # of profiles that the plan no longer names
            if old.plan == plan.name and not lists_with(old.profile, plan):
                (folder / FOLDER / old.name).unlink()
        kept, due = read_all_evidence(folder), due_refusals(plan, folder)
        refused = {one.profile: one for one in read_all_refusals(folder)}
    made: list[Finding] = []
    todo = pieces(remaining(plan, kept).trials, due)
    for done in _made(todo, plan, keep, stages, workers):
        if isinstance(done, KeptRefusals):
            refused[done.profile] = done
            if folder is not None:
                write_refusals(done, folder)
        else:
            made += done
            if folder is not None:
                keep_findings(done, plan, folder)
    every = (*(one for evidence in kept for one in evidence.findings), *made)
    found = {(_trial(one), one.run.profile): one for one in every}  # a new result replaces a kept one
    whole = tuple(finding for trial in plan.trials for finding in _of_trial(trial, found))
    tried = {
        name: one.refusals if name in due else [replace(r, kept=one.date) for r in one.refusals]
        for name, one in refused.items()
    }
    below = [one for name in plan.refusals for one in tried.get(name, ()) if one.minimum > 0]
    violations = [one for name in plan.moves for one in tried.get(name, ()) if one.minimum == 0]
    refusals = (*below, *violations)
    untried, again, day = left_out(plan, plan.trials), how_again(plan), today() if todo else ""
    seconds = time.perf_counter() - begun
    return Audit(plan.name, plan.title, "demonstration", whole, untried, seconds, __version__, again, refusals, day)


def _made(
    todo: tuple[Piece, ...], plan: AuditPlan, keep: Path | None, stages: Stages, workers: int
) -> Iterator[tuple[Finding, ...] | KeptRefusals]:
    """The results of the pieces as they come. In this process it shows the stages of each run, else how many are over."""
    alone = len(todo) if workers == 1 else sum(piece.timed for piece in todo)
    in_order = sorted(todo, key=lambda piece: not piece.timed)
    yield from IN_PROCESS.map(_OnOwnRuns(plan, keep, stages), in_order[:alone])
    if rest := in_order[alone:]:
        stages.stage("trials that share runs, in several processes", len(rest))
        with closing(crew_of(min(workers, len(rest)))) as crew:
            for number, done in enumerate(crew.map(_OnOwnRuns(plan, keep, Unwatched()), rest), start=1):
                yield done
                stages.step(number)


def keep_findings(made: Iterable[Finding], plan: AuditPlan, folder: Path) -> None:
    """Keeps findings with the kept ones of other trials; results of trials that the plan no longer has are dropped."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for finding in made:
        found.setdefault((finding.run.profile, finding.run.model), []).append(to_keep(finding))
    before = {(kept.profile, kept.model): kept.findings for kept in read_all_evidence(folder)}
    listed = trials_by_hash(plan).keys()
    for (profile, model), new in found.items():
        again = {_trial(one) for one in new}
        others = (one for one in before.get((profile, model), ()) if _trial(one) in listed - again)
        write_evidence(Evidence(profile, model, plan.name, (*others, *new)), folder)


def _trial(finding: Finding) -> str:
    return finding.attempt.bound.get(TRIAL, "")


def _of_trial(trial: Trial, found: Mapping[tuple[str, str], Finding]) -> tuple[Finding, ...]:
    """The findings of a trial, its baseline first. If the baseline did not break, the others tested nothing."""
    order, digest = dict.fromkeys((trial.expect_fail, *trial.profiles)), trial_hash(trial)
    texts = attack_texts(attack_called(trial.attack))  # these are not kept
    results = (found[digest, profile] for profile in order if (digest, profile) in found)
    return with_baseline(tuple(replace(one, about=replace(one.about, **texts)) for one in results))
