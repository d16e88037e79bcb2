"""The statement on what a run releases: who, which documents, what is hidden and how well, from what it started, and what not.

It is facts of the run's own record, its agreement and its ledgers, and kept trials of the software; no figure of a document or
of a single party is in it, so it may leave with the model. Its file is JSON; that file's digest names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from securetm.accounting.calculator.persons import grown
from securetm.contracts import Unit
from securetm.data_classes import asdict, dataclass
from securetm.plans.profiles import claims_of
from securetm.reports.document import Document, Paragraph, Section, ToFillIn
from securetm.reports.statement.seal import sheet_marks, shown_digest
from securetm.reports.statement.sources import ReportSources, attacks_read
from securetm.reports.texts import said, sections, sentence
from securetm.threats import read_threat_model

FORMAT = 1
_SEVERAL = (2, 5)  # documents of a person, of which the statement says what they spend together
SIGNATURE_LINES = ("Name", "Function", "Place, date", "Signature")


@dataclass(frozen=True)
class Statement:
    """Everything that the sheet says. A figure that there is not is None."""

    format: int
    run: str
    day: str  # on which the run ended
    software: str
    model: str
    profile: str
    title: str  # of the profile
    parties: tuple[str, ...]
    who: tuple[str, ...]
    unit: str  # that the bound is about; empty without one
    documents: tuple[str, ...]
    neighbours: str
    epsilon: float | None  # the most that the run spent of a unit at one party
    delta: float | None
    all_runs: float | None  # epsilon with all earlier runs; None if that has no bound, or is not known here
    all_runs_delta: float | None
    unbounded_because: str | None
    bounded: bool  # whether a document, or a person, has a bound, with all earlier runs
    bound: tuple[str, ...]  # in words, the first the most important
    origins: tuple[str, ...]
    settings: tuple[str, ...]
    failure: tuple[str, ...]
    not_covered: tuple[str, ...]
    files: Mapping[str, str]  # that are released with it: SHA-256 by name
    digests: Mapping[str, str]  # of the run, the plan, the profile and the roster

    def as_file(self) -> bytes:
        """The statement as its file: the same bytes for the same facts."""
        return (json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def statement_on(sources: ReportSources) -> Statement:
    budget = sources.budget if sources.paid else None
    worst = (float(sources.worst["epsilon"]), float(sources.worst["delta"])) if budget else None
    because = sources.unbounded_because
    totals = (
        (float(one["all_runs"]), float(one["all_runs_delta"])) for one in sources.spent if one.get("all_runs") is not None
    )
    whole = max(totals, default=None) if because is None else None
    of_words = budget is not None and budget.unit is Unit.WORD
    most = max(worst, whole or worst) if worst else (0.0, 0.0)
    each_document = budget is not None and budget.unit is Unit.DOCUMENT
    of_several = [(several, grown(*most, several)) for several in _SEVERAL] if each_document and because is None else []
    digests = {"run": sources.run_digest, "plan": sources.plan_digest, "profile": sources.profile.digest.hex()}
    helped = [one.colluding for one in claims_of(sources.profile, sources.cohort) if one.against == "coordinator"]
    known = () if worst else attacks_read(sources)
    read = [one for one in attacks_read(sources, unprotected=True) if one not in known]
    nothing = () if helped or read else said("statement.nothing_stands_between")
    return Statement(
        format=FORMAT,
        run=sources.run,
        day=sources.ended or sources.begun,
        software=sources.software,
        model=sources.model,
        profile=sources.profile.name,
        title=sources.profile.title,
        parties=sources.everybody or sources.members,
        who=said("statement.who", sources),
        unit=budget.unit.value if budget else "",
        documents=said("statement.documents", sources),
        neighbours=sentence("statement.neighbours", budget.unit.value) if budget else "",
        epsilon=worst[0] if worst else None,
        delta=worst[1] if worst else None,
        all_runs=whole[0] if whole else None,
        all_runs_delta=whole[1] if whole else None,
        unbounded_because=because,
        bounded=budget is not None and not of_words and because is None,
        bound=(
            *said("statement.bound", sources, worst, whole),
            *(attacks_read(sources) if worst is None or of_words else ()),
        ),
        origins=sources.origins,
        settings=said("statement.settings", sources),
        failure=(*said("statement.failure", sources, worst, helped), *read, *nothing),
        not_covered=said(
            "statement.not_covered", sources, worst, of_several, read_threat_model(sources.profile.threat_model).risks
        ),
        files=dict(sorted(sources.released.items())),
        digests={name: digest for name, digest in {**digests, "roster": sources.roster_digest}.items() if digest},
    )


def sheet(statement: Statement, digest: str, name: str, annexes: Mapping[str, str]) -> Document:
    """The sheet. `digest` is that of the statement's file, `name` the file's name, and `annexes` what belongs to this sheet."""
    files = {**statement.files, **annexes, name: digest}
    day = f", {statement.day}" if statement.day else ""
    signs = (Paragraph(sentence("statement.signs"), kept=True), ToFillIn(SIGNATURE_LINES))
    return Document(
        title=f"What leaves of the run “{statement.run}”, and what is hidden",
        subtitle=f"Statement {shown_digest(digest)}{day}. By securetm {statement.software}.",
        sections=(*sections("statement.sheet", statement, files), Section("Signature", signs, aside=True)),
        annexes=tuple(annexes),
        foot=f"Statement {shown_digest(digest)}{day}",
        marks=sheet_marks(digest, files),
        day=statement.day,
        kind="sheet",
        ending=said("statement.itself"),
    )
