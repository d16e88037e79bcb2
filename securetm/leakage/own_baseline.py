"""The baseline of a user's run: the same plan over the same documents, under a profile without protection.

A baseline over other documents would say nothing about this run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from securetm.agreement import agree
from securetm.corpus.corpus import Corpus
from securetm.errors import SecuretmError
from securetm.federation.folder import RunFolder, begin
from securetm.federation.running_errors import DamagedStore
from securetm.federation.simulation import train
from securetm.federation.soundness import check_answerable, check_floor
from securetm.leakage.demonstration import Demonstrations
from securetm.leakage.leakage_errors import RunNotPossible
from securetm.plan_reading import plan_from_tables
from securetm.plans import Plan
from securetm.profile_errors import TooFewForProfile
from securetm.profiles import read_profile
from securetm.toml_settings import digest


def serves_itself(given: RunFolder, profile: str) -> bool:
    """Whether the run has the baseline's profile, so it is its own baseline."""
    return given.plan.profile == profile


def baseline_plan(given: RunFolder, profile: str) -> Plan:
    """The run's plan under that profile, with the profile's first source of words if it does not allow the run's."""
    chosen, tables = read_profile(profile), given.plan.tables()
    words = tables["vocabulary"]
    source = words["source"] if words["source"] in chosen.vocabularies else ""
    rest: dict[str, Any] = {"profile": profile, "vocabulary": {**words, "source": source}}
    if chosen.budget is None:
        rest["privacy"] = {}
    return plan_from_tables({**tables, **rest}, f"the baseline of {given.path.resolve().name} under {profile}")


def check_baseline(given: RunFolder, profile: str, where: str) -> None:
    """Refuses a run that can have no baseline, before anything is trained."""
    if serves_itself(given, profile):
        return
    parties = len(given.members)
    try:
        agreement = agree(baseline_plan(given, profile))
        needed = agreement.profile.minimum_parties
        if parties < needed:
            raise TooFewForProfile(parties, needed, profile)
        check_answerable(agreement, parties)
        check_floor(agreement, parties)
        for name in given.members:
            _check_documents(given, name)
    except SecuretmError as problem:
        raise RunNotPossible(f"{where}, baseline under {profile}", str(problem), problem.advice()) from problem


def baseline_of(given: RunFolder, profile: str, runs: Demonstrations) -> RunFolder:
    """The run itself if it has that profile; else a run over the same documents of the same parties, made once."""
    if serves_itself(given, profile):
        return given
    plan = baseline_plan(given, profile)
    name = f"{profile}-of-{given.path.resolve().name}-{digest(plan.tables()).hex()[:8]}"
    if name not in runs.made:
        torch.set_num_threads(1)  # two threads on busy cores are many times slower than one
        documents = {one: Corpus.load(_documents(given, one)) for one in given.members}
        folder = begin(runs.place / name, plan, documents, with_content=True)
        train(folder, runs.stages)
        runs.made[name] = folder
    return runs.made[name]


def _documents(given: RunFolder, name: str) -> Path:
    return given.party(name) / "corpus.npz"


def _check_documents(given: RunFolder, name: str) -> None:
    if not _documents(given, name).is_file():
        raise DamagedStore(str(_documents(given, name)), "it is not there")
