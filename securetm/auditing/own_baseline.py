"""The baseline of a user's run: the same plan over the same documents, under a profile without protection.

A baseline over other documents would show nothing about this run.
"""

from __future__ import annotations

from typing import Any

from securetm.auditing.demonstration import Demonstrations, check_sound, placed
from securetm.corpus.corpus import Corpus
from securetm.errors import SecuretmError
from securetm.federation.folder import RunFolder
from securetm.federation.running_errors import DamagedStore
from securetm.plans.agreement import agree
from securetm.plans.profiles import read_profile
from securetm.plans.reading import plan_from_tables
from securetm.plans.schema import Plan
from securetm.profile_errors import TooFewForProfile
from securetm.settings import digest


def serves_itself(given: RunFolder, profile: str) -> bool:
    """Whether the run has the baseline's profile, so it is its own baseline."""
    return given.agreement.plan.profile == profile


def baseline_plan(given: RunFolder, profile: str, rounds: int = 0) -> Plan:
    """The run's plan under this profile, with the profile's first source of words if it does not allow the run's.

    It has so many rounds, or as many as the run.
    """
    chosen, tables = read_profile(profile), given.agreement.plan.tables()
    words = tables["vocabulary"]
    source = words["source"] if words["source"] in chosen.vocabularies else ""
    training = {**tables["training"], **({"rounds": rounds, "epochs": 0} if rounds else {})}
    rest: dict[str, Any] = {"profile": profile, "vocabulary": {**words, "source": source}}
    if chosen.budget is None:
        rest["privacy"] = {}
        training["persons"] = 0  # a number of persons means something only where the budget is theirs
    return plan_from_tables(
        {**tables, **rest, "training": training}, f"the baseline of {given.path.resolve().name} under {profile}"
    )


def check_baseline(given: RunFolder, profile: str, where: str) -> None:
    """Refuses a run that can have no baseline, before anything is trained."""
    if serves_itself(given, profile):
        return
    parties = len(given.members)
    with placed(f"{where}, baseline under {profile}"):
        agreement = agree(baseline_plan(given, profile))
        needed = agreement.profile.minimum_parties
        if parties < needed:
            raise TooFewForProfile(parties, needed, profile)
        check_sound(agreement, parties)
        for name in given.members:
            if not (path := given.party(name) / "corpus.npz").is_file():
                raise DamagedStore(str(path), "it is not there")


def no_baseline(given: RunFolder, profile: str, runs: Demonstrations, rounds: int = 0) -> str:
    """Trains the baseline if there is none yet. Says why it cannot be trained on these documents; empty if it was."""
    if profile not in runs.failed:
        try:
            baseline_of(given, profile, runs, rounds)
        except SecuretmError as problem:
            runs.failed[profile] = f"its baseline under {profile} cannot be trained on these documents: {problem}"
    return runs.failed.get(profile, "")


def baseline_of(given: RunFolder, profile: str, runs: Demonstrations, rounds: int = 0) -> RunFolder:
    """The run itself if it has this profile; else a run over the same documents of the same parties, made once."""
    if serves_itself(given, profile):
        return given
    plan = baseline_plan(given, profile, rounds)
    name = f"{profile}-of-{given.path.resolve().name}-{digest(plan.tables()).hex()[:8]}"
    if name not in runs.made:
        runs.trained(name, plan, {one: Corpus.load(given.party(one) / "corpus.npz") for one in given.members})
    return runs.made[name]
