"""The statement on what a run releases: who, which documents, what is hidden and how well, from what it started, and what not.

It is facts of the run's own record, its agreement and its ledgers, and kept trials of the software; no figure of a document or
of a single party is in it, so it may leave with the model. Its file is JSON; that file's digest names it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from securetm.accounting.calculator.persons import grown
from securetm.contracts import Budget, Unit
from securetm.plans.profiles import claims_of
from securetm.reports.document import Document, Paragraph, Section, Table, ToFillIn, items
from securetm.reports.statement.seal import sheet_marks, shown_digest
from securetm.reports.statement.sources import ReportSources, attacks_read
from securetm.threats import read_threat_model
from securetm.wording import counted, downward_whole, listed, upward, upward_figure

FORMAT = 1
_SEVERAL = (2, 5)  # documents of a person, of which the statement says what they spend together
_MOST_NAMED = 14
_ROUNDS = "rounds"  # that were agreed before: no look at documents ends the training
_NEIGHBOURS = {
    Unit.WORD: "Two sets of documents are neighbours if another word stands in one place of one document.",
    Unit.DOCUMENT: "Two sets of documents are neighbours if one of them has one document more, whatever is in it.",
    Unit.PERSON: "Two sets of documents are neighbours if one of them has one person's documents more, whatever is in them.",
}
_EACH = {Unit.WORD: "word occurrence", Unit.DOCUMENT: "document", Unit.PERSON: "person"}


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
    """The statement on a run."""
    budget = sources.budget
    worst = max(sources.paid, key=lambda one: float(one["epsilon"]), default=None)
    because = sources.unbounded_because
    totals = [
        (float(one["all_runs"]), float(one["all_runs_delta"])) for one in sources.spent if one.get("all_runs") is not None
    ]
    whole = max(totals, default=None) if because is None else None
    hides = worst is not None and budget is not None and budget.unit is not Unit.WORD
    return Statement(
        format=FORMAT,
        run=sources.run,
        day=sources.ended or sources.begun,
        software=sources.software,
        model=sources.model,
        profile=sources.profile.name,
        title=sources.profile.title,
        parties=sources.everybody or sources.members,
        who=tuple(_who(sources)),
        unit=budget.unit.value if budget is not None and worst is not None else "",
        documents=tuple(_documents(sources)),
        neighbours=_NEIGHBOURS.get(budget.unit, "") if budget is not None and worst is not None else "",
        epsilon=None if worst is None else float(worst["epsilon"]),
        delta=None if worst is None else float(worst["delta"]),
        all_runs=None if whole is None else whole[0],
        all_runs_delta=None if whole is None else whole[1],
        unbounded_because=because,
        bounded=hides and because is None,
        bound=tuple(_bound(sources, worst, because, whole)),
        origins=sources.origins,
        settings=tuple(_settings(sources)),
        failure=tuple(_failure(sources, worst)),
        not_covered=tuple(_not_covered(sources, worst, because, whole)),
        files=dict(sorted(sources.released.items())),
        digests={name: digest for name, digest in _digests(sources).items() if digest},
    )


def _digests(sources: ReportSources) -> dict[str, str]:
    named = {"run": sources.run_digest, "plan": sources.plan_digest, "profile": sources.profile.digest.hex()}
    return {**named, "roster": sources.roster_digest}


# ---- who, and which documents --------------------------------------------------------------------------------------


def _who(sources: ReportSources) -> Iterator[str]:
    names = sources.everybody or sources.members
    shown = names if len(names) <= _MOST_NAMED else (*names[:_MOST_NAMED], f"{len(names) - _MOST_NAMED} more")
    yield f"{counted(len(names), 'party', 'parties')}: {listed(tuple(shown))}."
    if not sources.federation:
        yield "Everything ran on one machine, in a simulation: whoever owned the machine could read all documents."
        return
    yield f"The coordinator of the federation {sources.federation} put the model together."
    if sources.at_home:
        yield f"This is the statement of {sources.members[0]}, on its own documents and its own ledger."
    else:
        yield "This is the statement of the coordinator, which has no document and sees no party's ledger."


def _documents(sources: ReportSources) -> Iterator[str]:
    yield sources.documents
    budget = sources.budget
    if budget is None or not sources.paid:
        yield "No unit is protected: neither a word, nor a document, nor a person."
    elif budget.unit is Unit.PERSON:
        yield "Protected is each person, with all documents that one party has of them."
    else:
        yield f"Protected is each {_EACH[budget.unit]}."


# ---- the bound -----------------------------------------------------------------------------------------------------


def _bound(
    sources: ReportSources, worst: Mapping[str, Any] | None, because: str | None, whole: tuple[float, float] | None
) -> Iterator[str]:
    budget = sources.budget
    if budget is None or worst is None:
        yield "There is no bound: nothing limits what the model tells about one document or one person."
        yield from attacks_read(sources)
        return
    epsilon, delta, each = float(worst["epsilon"]), float(worst["delta"]), _EACH[budget.unit]
    if budget.unit is Unit.WORD:
        yield "There is no bound for a document or a person: single words have one, and a document is as many of them."
    yield f"This run: at most epsilon = {upward(epsilon)} with delta = {upward_figure(delta)}, for each {each}."
    if because is not None:
        yield f"With all earlier runs: unbounded, because of {because}."
    elif worst.get("trial"):
        earlier = "Other earlier runs" if sources.before else "Earlier runs"
        yield f"{earlier} are not counted: the ledger was made for this run alone, which was a trial."
    elif whole is not None:
        total = f"epsilon = {upward(whole[0])} with delta = {upward_figure(whole[1])}"
        yield f"With all earlier runs in the ledger: at most {total}, for each {each}."
    else:
        yield "Earlier runs stand in each party's own ledger, and in the statement that the party makes at home."
    if budget.unit is Unit.WORD:
        yield from attacks_read(sources)


# ---- settings, failures, and what is not covered -------------------------------------------------------------------


def _settings(sources: ReportSources) -> Iterator[str]:
    budgeted = bool(sources.paid)
    yield "The plan was agreed before the first round; this run measured none of its settings on documents."
    if sources.stop != _ROUNDS:
        how = "with noise, as a part of epsilon" if budgeted else "without noise"
        yield f"When the training ended was decided by its progress ({sources.stop}), which parties told {how}."
    if not budgeted:
        yield "Whoever tried other settings on the same documents released more of them, without a bound."
    elif any(one.get("trial") for one in sources.spent) or (not sources.at_home and sources.federation):
        yield "A search over settings on these documents spends too, and is not counted here: whoever signs says none was."
    else:
        yield "A search over settings on these documents spends too: its runs count as earlier runs, if they used this ledger."


def _failure(sources: ReportSources, worst: Mapping[str, Any] | None) -> Iterator[str]:
    budget = sources.budget
    if budget is not None and worst is not None:
        delta = float(worst["delta"])
        if delta > 0:
            chance = f"with a probability of at most {upward_figure(delta)} (one in {downward_whole(1 / delta)})"
            yield (
                f"The limit itself may fail, for each {_EACH[budget.unit]} {chance}. Then nothing limits what the model tells "
                "of it: it may be read whole."
            )
    claims = claims_of(sources.profile, sources.cohort)
    helped = [one.colluding for one in claims if one.against == "coordinator"]
    if helped:
        most = max(helped)
        beyond = f"more than {counted(most, 'party', 'parties')} help" if most else "a party helps"
        yield f"If {beyond} the coordinator, what is promised against it no longer holds."
    known = () if worst is not None else attacks_read(sources)
    read = [one for one in attacks_read(sources, unprotected=True) if one not in known]
    yield from read
    if not (helped or read):
        yield "Nothing stands between the documents and those who take part: what is read above is what there is to read."


def _not_covered(
    sources: ReportSources, worst: Mapping[str, Any] | None, because: str | None, whole: tuple[float, float] | None
) -> Iterator[str]:
    yield "Every file of the run outside of the folder “release”: some hold documents, or figures of single parties."
    budget = sources.budget
    if budget is not None and worst is not None and budget.unit is not Unit.WORD:
        if because is None:  # else nothing limits what all runs tell of anybody
            yield from _of_persons(budget, *max((float(worst["epsilon"]), float(worst["delta"])), whole or (0.0, 0.0)))
        yield "What many documents have in common, and what becomes known of somebody because others are like them."
    yield from (f"{one[:1].upper()}{one[1:]}." for one in read_threat_model(sources.profile.threat_model).out_of_scope)


def _of_persons(budget: Budget, epsilon: float, delta: float) -> Iterator[str]:
    if budget.unit is Unit.DOCUMENT:
        bounds = ((several, grown(epsilon, delta, several)) for several in _SEVERAL)
        said = "; ".join(
            f"{upward(one.epsilon)} with delta = {upward_figure(one.delta)} for {several} documents" for several, one in bounds
        )
        yield f"A person who has several documents: epsilon grows to {said}."
    yield "A person at m parties has m times this epsilon; no party can see that a person is at another one, too."


SIGNATURE_LINES = ("Name", "Function", "Place, date", "Signature")
_SIGNS = (
    "I have read this page. I answer for the documents of the organisation that is named below. I know of no run over these "
    "documents that is not counted above, and I agree that the files listed here leave."
)
ITSELF = "This page loads nothing and sends nothing. Its figures are those of the run's own record."
_NO_INPUT = "Nothing but the agreed plan."


def sheet(statement: Statement, digest: str, name: str, annexes: Mapping[str, str]) -> Document:
    """The sheet. `digest` is that of the statement's file, `name` the file's name, and `annexes` what belongs to this sheet."""
    files = {**statement.files, **annexes, name: digest}
    day = f", {statement.day}" if statement.day else ""
    return Document(
        title=f"What leaves of the run “{statement.run}”, and what is hidden",
        subtitle=f"Statement {shown_digest(digest)}{day}. By securetm {statement.software}.",
        sections=tuple(_sections(statement, files)),
        annexes=tuple(annexes),
        foot=f"Statement {shown_digest(digest)}{day}",
        marks=sheet_marks(digest, files),
        day=statement.day,
        kind="sheet",
        ending=(ITSELF,),
    )


def _sections(statement: Statement, files: Mapping[str, str]) -> Iterator[Section]:
    head, *rest = statement.bound
    yield Section("What is hidden, and how well", (Paragraph(head, "strong"), *items(rest)))
    yield Section("Who, and what was trained", (Paragraph(" ".join((*statement.who, *_trained(statement)))),))
    documents = (*statement.documents, statement.neighbours) if statement.neighbours else statement.documents
    yield Section("Which documents", (Paragraph(" ".join(documents)),))
    yield Section("From what it started", items(statement.origins) or (Paragraph(_NO_INPUT),))
    yield Section("How the settings were chosen", (Paragraph(" ".join(statement.settings)),))
    yield Section("What a failure would show", items(statement.failure))
    yield Section("What is not covered", items(statement.not_covered))
    rows = tuple((PurePath(name).name, digest) for name, digest in files.items())
    yield Section("What belongs to this sheet", (Table(("file", "SHA-256"), rows, shares=(0.32, 0.68)),), aside=True)
    yield Section("Signature", (Paragraph(_SIGNS, kept=True), ToFillIn(SIGNATURE_LINES)), aside=True)


def _trained(statement: Statement) -> tuple[str, ...]:
    return (f"Model: {statement.model}. Protection: {statement.profile} ({statement.title[:1].lower()}{statement.title[1:]}).",)
