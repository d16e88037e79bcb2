"""The runs that an audit makes for itself: real federations, recorded, trained only as long as the attacks need them.

For a user's run they are its baselines: the same plan over the same documents, under a profile without protection.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from securetm.auditing.ground_truth import RECORD, with_canaries
from securetm.auditing.plans import Trial
from securetm.auditing.roles import HONEST, Corruption
from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import prune
from securetm.data_classes import dataclass, field
from securetm.errors import Mistake, SecuretmError
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import train
from securetm.federation.soundness import check_answerable, check_floor
from securetm.federation.sources import corpora_of
from securetm.federation.store import DamagedStore, write_bytes
from securetm.plans.agreement import agree
from securetm.plans.profiles import read_profile
from securetm.plans.recommend import plan_from_tables, whole_plan
from securetm.plans.schema import Plan
from securetm.settings import digest, require
from securetm.stages import Stages

_SOURCE = "vocabulary.source"
_LISTED = "made of the texts of the audit, of which its own canaries are no part"  # why an audit's list of words is public


@dataclass
class Demonstrations:
    """Recorded runs by name. Attacks that need the same run share it."""

    place: Path
    stages: Stages
    made: dict[str, RunFolder] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # profile -> why no baseline of a given run could be trained under it
    corpora: dict[str, Mapping[str, Corpus]] = field(default_factory=dict)  # by their source

    def run(
        self,
        profile: str,
        settings: Mapping[str, Any],
        without: int = 0,
        canaries: int = 0,
        corruption: Corruption = HONEST,
    ) -> RunFolder:
        """The recorded run of this profile with these settings of a plan, by dotted name.

        `without` leaves out the first parties. `canaries` is the number of documents made for each party; a fair coin decides
        whether each is added to the party's own. `corruption` replaces honest roles.
        """
        whole = fitting(settings, profile)
        changes = {"without": without, "canaries": canaries, **corruption.named}
        name = f"{profile}-{digest(_plain({**whole, **changes})).hex()[:8]}"
        if name not in self.made:
            plan, record = self.planned(whole), None
            documents: Mapping[str, Corpus] = dict(list(self.documents(plan).items())[without:])
            if canaries:
                documents, record = with_canaries(
                    documents, canaries, plan.seed, plan.vocabulary.public_words(plan.tokeniser.make())
                )
            folder = self.trained(name, plan, documents, corruption)
            if record is not None:
                record.save(folder.path / RECORD)
        return self.made[name]

    def trained(self, name: str, plan: Plan, documents: Mapping[str, Corpus], corruption: Corruption = HONEST) -> RunFolder:
        """Trains a run over these documents, and keeps it under this name."""
        torch.set_num_threads(1)  # two threads on busy cores are many times slower than one
        folder = begin(self.place / name, plan, documents, with_content=True)
        train(folder, self.stages, **corruption.roles(folder))
        self.made[name] = folder
        return folder

    def planned(self, settings: Mapping[str, Any]) -> Plan:
        """The plan. If it needs a public list of words and names none, the list is made from the public texts."""
        if settings.get(_SOURCE) != "file" or "vocabulary.file" in settings:
            return whole_plan(None, settings)
        source = {name: value for name, value in settings.items() if name != _SOURCE}
        unlisted = whole_plan(None, fitting(source, "open"))
        whole = Corpus.concat(list(self.documents(unlisted).values()))
        words = prune(whole, max_words=unlisted.vocabulary.max_words, min_df=unlisted.vocabulary.min_documents)
        path = self.place / f"words-{digest(list(words)).hex()[:8]}.txt"
        write_bytes(path, "\n".join(words).encode())
        return whole_plan(None, {**settings, "vocabulary.file": str(path), "origins.vocabulary": _LISTED})

    def documents(self, plan: Plan) -> Mapping[str, Corpus]:
        told = (plan.corpus, plan.tokeniser, plan.embeddings)
        source = json.dumps([*(_plain(vars(one)) for one in told), plan.seed])
        if source not in self.corpora:
            self.corpora[source] = {name: corpus.gathered() for name, corpus in corpora_of(plan, self.stages).items()}
        return self.corpora[source]


@contextmanager
def place_for(keep: Path | None) -> Iterator[Path]:
    """The folder for runs that are to be kept, or one that is deleted at the end."""
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="securetm-audit-") as place:
        yield Path(place)


def check_runs(trial: Trial, where: str) -> None:
    """Refuses settings that no plan of a run can have, before any run is made.

    A list of two words takes the place of a public list that does not exist yet.
    """
    for name, value in trial.run.items():
        plain = isinstance(value, int | float | str | bool) and not (isinstance(value, float) and not math.isfinite(value))
        require(plain, f"{where}, run", name, value, "must be a number, a text, or true or false")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as words:
        words.write("one\ntwo")
        words.flush()
        listed = trial.run.get(_SOURCE) == "file" and "vocabulary.file" not in trial.run
        named = {"vocabulary.file": words.name, "origins.vocabulary": _LISTED} if listed else {}
        settings = {**trial.run, **named}
        for profile in trial.profiles:
            with placed(f"{where}, run under {profile}"):
                agreement = agree(whole_plan(None, fitting(settings, profile)))
                parties = max(agreement.plan.corpus.parties, agreement.profile.minimum_parties)
                check_answerable(agreement, parties)
                check_floor(agreement, parties)


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Turns the refusal of a run into one that names the place in the plan which asks for the run."""
    try:
        yield
    except SecuretmError as problem:
        sentence = "{where}: the runs that it asks for cannot be made: {problem}"
        raise Mistake(sentence, hint="{advised}", where=where, problem=str(problem), advised=problem.advice()) from problem


def fitting(settings: Mapping[str, Any], profile: str) -> dict[str, Any]:
    """The settings with this profile: those of a budget only if it has one, a source of words only if it allows that."""
    chosen = read_profile(profile)
    fits = {n: v for n, v in settings.items() if chosen.budget is not None or not n.startswith("privacy.")}
    if _SOURCE in fits and fits[_SOURCE] not in chosen.vocabularies:
        del fits[_SOURCE]
    return {**fits, "profile": profile}


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, int | float | str | bool) else str(value) for name, value in settings.items()}


# ---- the baseline of a user's run -----------------------------------------------------------------------------------


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
        check_answerable(agreement, parties)
        check_floor(agreement, parties)
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
