"""What a statement stands on: the folder of a run, its audits, and kept results of its profile.

The folder is that of a simulation or a coordinator, or what a party has at home of a run. Every file of it is compared with its
digest first. A run that has not ended is refused."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from securetm.auditing.evidence import evidence_folder
from securetm.auditing.record import BROKEN, DOCUMENT, HELD, NOT_TESTED, OPEN, Audit, Finding
from securetm.auditing.recorded import MESSAGES
from securetm.auditing.regulators import bears_on
from securetm.contracts import Budget, Cohort, Profile
from securetm.data_classes import dataclass, field
from securetm.errors import Mistake
from securetm.federation.folder import (
    ADDED,
    KEPT,
    RUN,
    VERSION,
    NotARun,
    RunFolder,
    check_all,
    read_digests,
    reopen,
    result_of,
)
from securetm.federation.party.result import REPORT
from securetm.federation.release import MODEL, RELEASE, TOPICS, released_model
from securetm.federation.store import DamagedStore, read_json
from securetm.federation.transcript import Transcript
from securetm.models.stored_model import check_plan_of
from securetm.plans.profiles import ProfileFile, cohort_of
from securetm.plans.schema import Plan, decode
from securetm.reports.audits.records import AUDITS, read_record
from securetm.reports.audits.threats import kept_evidence, kept_results, refusal_facts
from securetm.reports.audits.wording import SHARE, claimed_epsilon, figure, scale_of
from securetm.reports.runs import counted_before, every_origin
from securetm.reports.statement.questions import (
    OTHER_MODEL,
    READER,
    SAME_MODEL,
    THIS_RUN,
    UNPROTECTED,
    Attempted,
    Lies,
    plain_lie,
    plain_measure,
)
from securetm.reports.statement.seal import sha256_of
from securetm.reports.texts import said, sentence

_BARE = "open"  # the profile without protection
_SAME = 0.01  # epsilons that differ by less are the same claim: noise is calibrated to about that


@dataclass(frozen=True)
class ReportSources:
    """One run, as far as the page speaks of it."""

    run: str
    begun: str
    software: str
    model: str
    rounds: int
    profile: Profile
    plan_digest: str
    federation: str
    members: tuple[str, ...]
    keys: Mapping[str, bytes]
    spent: tuple[Mapping[str, Any], ...]
    run_digest: str
    model_digest: str
    channels: tuple[tuple[str, int, int], ...] = ()  # channel, messages, bytes
    told: Mapping[str, int] = field(default_factory=dict)  # of a party at home: questions that it answered
    roster_digest: str = ""  # that a party accepted
    with_content: bool = False
    audits: tuple[tuple[Audit, str], ...] = ()  # each with the digest of its record
    budget: Budget | None = None  # of the run's agreement
    ended: str = ""  # the day
    everybody: tuple[str, ...] = ()  # all parties, where `members` are only those whose ledgers are known
    at_home: bool = False  # with a party
    stop: str = "rounds"  # what ended the training
    documents: str = "The documents that each party brought."  # which these are
    origins: tuple[str, ...] = ()  # of every input, in words
    before: tuple[str, ...] = ()  # what of the epsilon is that of earlier runs, in words
    released: Mapping[str, str] = field(default_factory=dict)  # files of `release/`, without the statement: SHA-256 by name

    @property
    def paid(self) -> tuple[Mapping[str, Any], ...]:
        """What each party spent whose epsilon has a bound."""
        return tuple(one for one in self.spent if one.get("epsilon") is not None)

    @property
    def worst(self) -> Mapping[str, Any]:
        """What the party spent that spent most, where any epsilon has a bound."""
        return max(self.paid, key=lambda one: float(one["epsilon"]))

    @property
    def unbounded_because(self) -> str | None:
        """The run because of which all runs together have no bound; None where they have one."""
        return next((str(one["unbounded_because"]) for one in self.spent if one.get("unbounded_because")), None)

    @property
    def cohort(self) -> Cohort:
        """All parties; a party at home may keep no list of the others: as many as its profile needs."""
        members, least = self.everybody or self.members, max(self.profile.minimum_parties, 2)
        return cohort_of(self.profile, members if len(members) >= least else least)


def sources_of(path: Path) -> ReportSources:
    """Reads a run's folder, whoever it belongs to."""
    if (path / RUN).is_file():
        return _of_run(path)
    if (path / REPORT).is_file():
        return _of_party(path)
    raise NotARun(str(path), "finished run")


def attempts_on(sources: ReportSources) -> tuple[Attempted, ...]:
    """All attempts of which the page may speak: on this run, and the kept ones on its profile."""
    found = [Attempted(THIS_RUN, finding) for audit, _ in sources.audits for finding in audit.findings]
    claimed = claimed_of(sources)
    kept = _kept(sources.profile.name, sources.model)
    found += [with_changes(one, claimed=_other_claim(one.finding, claimed)) for one in kept]
    if sources.profile.budget is None:  # a profile that adds no noise hands on the same model as no protection at all
        for one in _kept(_BARE, sources.model):
            if one.place == SAME_MODEL and one.finding.attempt.adversary == READER:
                attempt = replace(one.finding.attempt, baseline=False)
                found.append(Attempted(UNPROTECTED, replace(one.finding, attempt=attempt), one.stale))
    return tuple(found)


def claimed_of(sources: ReportSources) -> tuple[float, str] | None:
    """The epsilon of the party that spent most in this run, and its unit; None where nothing is claimed.

    A coordinator, who sees no ledger, claims what the agreement lets every party spend.
    """
    budget = sources.budget or sources.profile.budget
    if budget is None:
        return None
    spent = [(float(one["epsilon"]), str(one["unit"])) for one in sources.paid]
    return max(spent, default=(budget.epsilon, budget.unit.value))


def _other_claim(finding: Finding, claimed: tuple[float, str] | None) -> str:
    """What was claimed where it was tried, if not what this run claims: a failure against other noise says nothing."""
    epsilon, unit = finding.run.epsilon, finding.run.epsilon_unit
    if epsilon is None:
        return "" if claimed is None else "no epsilon"
    if claimed is not None and unit == claimed[1] and math.isclose(epsilon, claimed[0], rel_tol=_SAME):
        return ""
    return claimed_epsilon(finding).partition(",")[0]


def kept_findings(profile: str, model: str) -> Iterator[Finding]:
    """The findings of kept trials of this profile and this model, whether or not the software changed since."""
    for evidence in kept_evidence(profile, evidence_folder(), model):
        yield from evidence.findings


def _kept(profile: str, model: str) -> Iterator[Attempted]:
    for one in kept_results(profile, evidence_folder()):
        yield Attempted(SAME_MODEL if one.model == model else OTHER_MODEL, one.finding, bool(one.stale))


def lies_to_parties(profile: str) -> Lies:
    """How the kept lies of a coordinator ended that were told to parties of this profile."""
    facts = refusal_facts(profile, evidence_folder())
    if not facts or not facts["lies"]["tried"]:
        return Lies()
    broken, answered = facts["not_held"], [one["attempt"] for one in facts["not_claimed"]]
    told = sentence("statement.lies", facts, list(map(plain_lie, broken)), list(map(plain_lie, answered)))
    return Lies(BROKEN if broken else NOT_TESTED if facts["stale"] else OPEN if answered else HELD, told)


# ---- a simulation, or a coordinator --------------------------------------------------------------------------------


def _of_run(path: Path) -> ReportSources:
    facts = read_json(path / RUN)
    if isinstance(facts.get("version"), int) and facts["version"] > VERSION:
        raise Mistake(
            "{path} is of format {found}, and this version of securetm reads format {known}",
            hint="update securetm, or have the report made where the run was made",
            path=str(path / RUN),
            found=facts["version"],
            known=VERSION,
        )
    folder, result = reopen(path), result_of(path)
    check_all(path)
    plan = folder.agreement.plan
    try:
        spent = tuple(dict(one) for one in result["spent"])
        rounds, run = int(result["rounds"]), str(result["run"])
    except (KeyError, TypeError, ValueError) as problem:
        raise DamagedStore(str(path), "its result is not that of a finished run") from problem
    return ReportSources(
        run,
        str(facts.get("begun", ""))[:10],
        str(facts.get("software", "")),
        plan.model.name,
        rounds,
        folder.agreement.profile,
        folder.agreement.digest.hex(),
        str(facts.get("federation", "")),
        folder.members,
        folder.keys,
        spent,
        _digest_of_run(path),
        sha256_of(folder.model),
        _channels(folder),
        with_content=folder.with_content,
        audits=_audits(path),
        budget=folder.agreement.budget,
        ended=str(result.get("ended", ""))[:10],
        stop=plan.training.stop,
        documents=_documents_of(plan, str(facts.get("federation", ""))),
        origins=every_origin(result),
        before=counted_before(result),
        released=released_files(path),
    )


def _documents_of(plan: Plan, federation: str) -> str:
    if federation:
        return "The documents that each party named in its own file, read at home."
    held = "as a column of it says" if plan.corpus.partition == "column" else f"dealt out ({plan.corpus.partition})"
    return f"The documents in {Path(plan.corpus.source).name}, held by the parties {held}."


def released_files(path: Path) -> dict[str, str]:
    """The files that are released, without the statement about them."""
    files = {name: sha256_of(path / RELEASE / name) for name in (MODEL, TOPICS)}
    return {name: digest for name, digest in files.items() if digest}


def _digest_of_run(path: Path) -> str:
    """The SHA-256 of the digests of all files of the run, without what was added to it later."""
    if not (path / KEPT).is_file():  # what a party has of a run
        return ""
    kept = read_digests(path)
    files = {name: digest for name, digest in {**kept.files, **kept.rows}.items() if not name.startswith(ADDED)}
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def _channels(folder: RunFolder) -> tuple[tuple[str, int, int], ...]:
    """Number and bytes of the messages on each channel, as the transcript has them."""
    here = folder.path / "transcript"
    if not (here / MESSAGES).is_file():
        return ()
    with closing(Transcript(here)) as transcript:
        found = transcript.rows("SELECT channel, COUNT(*), SUM(bytes) FROM messages GROUP BY channel ORDER BY channel")
    return tuple((str(channel), int(number), int(length)) for channel, number, length in found)


def _audits(path: Path) -> tuple[tuple[Audit, str], ...]:
    return tuple((read_record(one), sha256_of(one)) for one in sorted((path / AUDITS).glob("*.json")))


# ---- what a party has at home --------------------------------------------------------------------------------------


# What everybody may know of the run, and has a digest. Not the report: it holds exact figures of the party's documents, and
# whoever knows all but one of these could compute the report with and without it, and see which has the digest.
_PUBLIC = ("federation", "run", "party", "agreement", "roster", "rounds", "ended")


def _of_party(path: Path) -> ReportSources:
    report, model = read_json(path / REPORT), sha256_of(released_model(path))
    try:
        check_plan_of(str(path / REPORT), report["plan"])
        plan, spent = decode(report["plan"], str(path / REPORT)), report["spent"]
        return ReportSources(
            str(report["run"]),
            str(report["ended"])[:10],
            str(report.get("software", "")),
            str(report["model"]),
            int(report["rounds"]),
            plan.profile_in(ProfileFile.read(plan.profile)),
            str(report["agreement"]),
            str(report["federation"]),
            (str(report["party"]),),
            {},
            ({"party": report["party"], **spent},) if spent else (),
            hashlib.sha256(json.dumps([*(str(report[name]) for name in _PUBLIC), model]).encode()).hexdigest(),
            model,
            roster_digest=str(report["roster"]),
            told={str(name): int(number) for name, number in report["answered"].items()},
            audits=_audits(path),
            budget=plan.profile_in(ProfileFile.read(plan.profile)).budget,
            ended=str(report["ended"])[:10],
            everybody=tuple(map(str, report.get("members", ()))),
            at_home=True,
            stop=plan.training.stop,
            documents=f"The data set {report.get('data_set', '')} of {report['party']}, as its own file names it.",
            origins=every_origin(report),
            before=counted_before(report),
            released=released_files(path),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise DamagedStore(str(path / REPORT), "it is not a party's report of a run") from problem


_WHO = {"coordinator": "the coordinator", "party": "another party", READER: "whoever gets the model"}
_ORDER = tuple(reversed(_WHO))  # a model is released, so its readers come first


def attacks_read(sources: ReportSources, *, unprotected: bool = False) -> tuple[str, ...]:
    """A sentence for each kind of adversary with the most that one of our attacks read, or one that none did.

    A profile that adds no noise hands on the model that there is without protection: what its readers read there counts, too.
    """
    profile, model = _BARE if unprotected else sources.profile.name, sources.model
    bare = profile == _BARE  # there a baseline is what it is about
    tried = [(one, profile) for one in kept_findings(profile, model) if bare or not one.attempt.baseline]
    if sources.budget is None and not unprotected:
        tried += [(one, _BARE) for one in kept_findings(_BARE, model) if one.attempt.adversary == READER]
    # what could have found out something about documents or their owners; spoiling a model does not
    tested = [(one, of) for one, of in tried if one.standing != NOT_TESTED and bears_on(one.attempt.attack)]
    read = [(one, of) for one, of in tested if one.standing in (BROKEN, OPEN)]

    def rank(one: tuple[Finding, str]) -> tuple[bool, bool, float]:
        """Shares before other figures, which cannot be compared with them; those of documents before others."""
        found = one[0].outcome.measured
        return scale_of(found) == SHARE, found.unit == DOCUMENT, found.value or 0.0

    worst = [max(of, key=rank) for who in _ORDER if (of := [one for one in read if one[0].attempt.adversary == who])]
    facts = [
        (_WHO[one.attempt.adversary], one.attempt.helpers, figure(found), plain_measure(found.measure), _where(under))
        for one, under in worst
        for found in (one.outcome.measured,)
    ]
    return said("statement.attacks_read", model, _where(profile), len(tested), facts)


def _where(profile: str) -> str:
    return "without any protection" if profile == _BARE else f"under the profile {profile}"
