"""A plan's kept results and those that were made now as one audit, so that a kept refutation counts. It runs no attack.

Of kept results there are figures and verdicts; what was recovered, and curves, are never kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from securetm.leakage.attacks import attack_called
from securetm.leakage.audit_plans import AuditPlan, Trial
from securetm.leakage.auditor import how_again, left_out
from securetm.leakage.evidence import Evidence, Figure, Tried
from securetm.leakage.evidence_hashes import TRIAL, trial_hash
from securetm.leakage.findings import Audit, Finding, Measured, Refusal, with_baseline
from securetm.leakage.kept_refusals import DatedRefusal, KeptRefusals
from securetm.profiles import read_profile
from securetm.version import __version__

Made = Sequence[tuple[AuditPlan, Audit]]  # pieces of a plan, each with what was found when it was carried out
_Place = tuple[str, str]  # which trial, by its hash, on which profile


def whole_audit(
    plan: AuditPlan,
    made: Made,
    kept: Iterable[Evidence],
    refusals: Iterable[KeptRefusals] = (),
    tried_now: Iterable[str] = (),
) -> Audit:
    """Every result of the plan: made now where there is one, else as it was kept; refusals of `tried_now` are new."""
    now, before = _made(made), _kept(kept)
    findings = tuple(finding for trial in plan.trials for finding in _of_trial(trial, now, before))
    fresh = set(tried_now)
    told = {one.profile: one for one in refusals}
    new = [one for one in told.values() if one.profile in fresh]
    refused = tuple(_refused(plan, told, fresh))
    seconds = sum(audit.seconds for _, audit in made) + sum(one.seconds for one in new)
    day = max((*(audit.made for _, audit in made), *(one.date for one in new)), default="")
    said = (left_out(plan, plan.trials), seconds, __version__, how_again(plan), refused, day)
    return Audit(plan.name, plan.title, "demonstration", findings, *said)


def _refused(plan: AuditPlan, kept: Mapping[str, KeptRefusals], fresh: set[str]) -> Iterator[Refusal]:
    """In the order in which an audit tries them: what was begun below a minimum of all profiles, then the lies."""
    wanted = [*((name, False) for name in plan.refusals), *((name, True) for name in plan.moves)]
    for profile, lies in wanted:
        found = kept[profile].refusals if profile in kept else ()
        for one in found:
            if lies == (one.minimum == 0):
                yield one if profile in fresh else DatedRefusal(**asdict(one), kept=kept[profile].date)


def _made(made: Made) -> Mapping[_Place, Finding]:
    """An audit without a run of its own gives one finding for each profile of each trial, in their order."""
    pairs = (
        (trial, finding)
        for piece, audit in made
        for trial, finding in zip((t for t in piece.trials for _ in t.profiles), audit.findings, strict=True)
    )
    return {(trial_hash(trial), finding.profile): finding for trial, finding in pairs}


def _kept(kept: Iterable[Evidence]) -> Mapping[_Place, tuple[str, Tried]]:
    return {(one.bound[TRIAL], each.profile): (each.model, one) for each in kept for one in each.findings if TRIAL in one.bound}


def _of_trial(trial: Trial, now: Mapping[_Place, Finding], before: Mapping[_Place, tuple[str, Tried]]) -> Sequence[Finding]:
    """The baseline first, as when all is made at once; what depends on one that did not break was not tested."""
    others = [profile for profile in trial.profiles if profile != trial.expect_fail]
    return with_baseline(tuple(_each(trial, [trial.expect_fail, *others], now, before)))


def _each(
    trial: Trial, profiles: Iterable[str], now: Mapping[_Place, Finding], before: Mapping[_Place, tuple[str, Tried]]
) -> Iterator[Finding]:
    for profile in profiles:
        place = trial_hash(trial), profile
        if place in now:
            yield now[place]
        elif place in before:
            yield _found(trial, profile, *before[place])


def _found(trial: Trial, profile: str, model: str, kept: Tried) -> Finding:
    attack, budget = attack_called(trial.attack), read_profile(profile).budget if kept.epsilon is not None else None
    plain = {name: value for name, value in vars(kept).items() if name not in ("date", "cores", "python", "bound")}
    said = {name: getattr(attack, name) for name in ("citation", "cost", "given", "limits", "remark")}
    return Finding(
        **{**plain, "measured": _measured(kept.measured), "beside": tuple(map(_measured, kept.beside)), **said},
        profile=profile,
        model=model,
        delta=trial.run.get("privacy.delta", budget.delta) if budget is not None else None,
        epsilon_unit=budget.unit.value if budget is not None else "",
        liars=trial.liars,
        canaries=trial.canaries,
        without=trial.without,
        kept=kept.date,
    )


def _measured(figure: Figure) -> Measured:
    return Measured(**asdict(figure))
