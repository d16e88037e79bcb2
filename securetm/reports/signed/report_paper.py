"""The annex of the sheet to sign as a sequence of sections, and what every such paper is made of.

Every form of it, page, PDF, text and terminal, shows these words and figures.

No form adds a figure of its own. This module reads nothing and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from securetm.leakage.regulators import CRITERIA, INFERENCE, LINKING, NOT_SHOWN, NOT_TRIED, SCOPES, SINGLING_OUT
from securetm.leakage.verdicts import BROKEN, HELD, NOT_TESTED, OPEN
from securetm.reports.signed.plain_words import ENDED, plain_reason
from securetm.reports.signed.report_facts import (
    OTHER_MODEL,
    SAME_MODEL,
    THIS_RUN,
    UNPROTECTED,
    CriterionFacts,
    QuestionAnswer,
    SignedReport,
    Tried,
)
from securetm.reports.signed.sheet_marks import annex_marks, shown_digest
from securetm.wording import counted, listed, upward

MEANING = {
    BROKEN: "an attack did what the profile promises to prevent",
    OPEN: "an attack got something that nobody promised to protect",
    HELD: "what was tried failed, as far as the figure beside it says; another attack, or more effort, might succeed",
    NOT_TESTED: "nothing was learned",
}
_PLACES = {
    THIS_RUN: "This run",
    SAME_MODEL: "Our own trials of this profile and model",
    OTHER_MODEL: "Beside this, and no answer for this model: our own trials of this profile with another one",
    UNPROTECTED: "Our own trials without any protection, where the finished model is the same, as no noise is in it",
}
LEFT_UNTRIED = "What was not tried, and why"
TRIED_NOWHERE = "Tried nowhere."
_MASKED = (
    "Masked or encrypted means: to the others what one party sends looks like chance, and only the total over all parties is "
    "opened. Noise is chance that is added to numbers, so that they do not tell who was in them."
)
ASKED = {  # by opinion 05/2014
    SINGLING_OUT: "records that identify one person can be isolated",
    LINKING: "two records about the same person, or the same group, can be linked",
    INFERENCE: "something about a person can be deduced with significant probability",
}
_OPINION = (
    "The European Data Protection Board calls a model anonymous if it is insignificantly likely, for every person and with all "
    "means reasonably likely to be used, that personal data of those it learned from are extracted from it, or are obtained by "
    "queries (opinion 28/2024). Earlier guidance asks three questions (opinion 05/2014)."
)
_MARKS = (
    "A mark is the worst of what was tried on this run, and on this model under this profile. None means safe: “held” says "
    "that what was tried failed, “not tested” that nobody knows."
)
_LIMITS = (
    "This does not say that the model is anonymous: that is judged case by case, by whoever answers for the data and then by "
    "the authority. The opinion is about the finished model; only those who took part saw the messages. Figures are averages "
    "over documents, and the opinion asks about every person. What was not tried, or not well enough, may succeed."
)


@dataclass(frozen=True)
class Paragraph:
    """A text; a strong one stands out, and one that is kept stays on the sheet of what follows."""

    text: str
    strong: bool = False
    kept: bool = False


@dataclass(frozen=True)
class Items:
    """A list of sentences or parts of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class TextTable:
    """A table of texts. The first column names the row; on a sheet each column takes its share of the width."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Reply:
    """One question with its answer."""

    question: str
    mark: str
    short: str
    said: tuple[str, ...]


@dataclass(frozen=True)
class ToFillIn:
    """Lines that a hand fills in."""

    lines: tuple[str, ...]


Block = Paragraph | Items | TextTable | Reply | ToFillIn


@dataclass(frozen=True)
class PaperSection:
    """A part of the page. A screen may fold what is beside its point; a print shows it."""

    title: str
    blocks: tuple[Block, ...]
    folded: bool = False


@dataclass(frozen=True)
class Paper:
    """The whole page."""

    title: str
    subtitle: str
    sections: tuple[PaperSection, ...]
    annexes: tuple[str, ...] = ()  # the files that belong to it and are written beside
    foot: str = ""  # of every sheet
    marks: tuple[str, ...] = ()  # that bind it to its annex, or to the sheet that it is an annex of
    day: str = ""  # on which it was made, as 2026-11-24
    one_sheet: bool = False


def paper(report: SignedReport) -> Paper:
    """The page in words."""
    made = f"; {report.made}" if report.made else ""
    subtitle = f"Run “{report.run}”, protection “{report.profile}”{made}. Software: securetm {report.software}."
    return Paper(report.title, subtitle, tuple(_sections(report)), tuple(report.annexes))


def annex_foot(statement: str, day: str) -> str:
    """What stands on every sheet of an annex."""
    return f"Annex to the statement {shown_digest(statement)}" + (f", {day}" if day else "")


def annex_of(made: Paper, statement: str, day: str) -> Paper:
    """The page as the annex of a sheet: it names the sheet's statement on every page."""
    foot = annex_foot(statement, day)
    return replace(made, title=f"Annex: {made.title}", foot=foot, marks=annex_marks(statement), day=day)


def _sections(report: SignedReport) -> Iterator[PaperSection]:
    conditions = tuple(one.follows.partition(": ")[2] for one in report.rules if one.applies and ": " in one.follows)
    danger = (Paragraph(report.danger, strong=True),) if report.danger else ()
    listed_ = (Items(conditions),) if conditions else ()
    yield PaperSection("Five marks", (_marks(report), Paragraph(_MARKS)))
    yield PaperSection(
        "Recommendation", (Paragraph(report.recommendation, strong=True), *listed_, *danger, Paragraph(report.headline))
    )
    yield PaperSection("Five questions", tuple(map(_reply, report.answers)))
    yield PaperSection("What was spent", tuple(Paragraph(text) for text in report.spent))
    yield PaperSection("What regulators ask", tuple(_regulators(report)))
    yield PaperSection("What was trained, and by whom", tuple(_trained(report)), folded=True)
    yield PaperSection("Fingerprints", tuple(_fingerprints(report)), folded=True)
    yield PaperSection("What each role saw", tuple(_roles(report)), folded=True)
    yield PaperSection(LEFT_UNTRIED, (Items(report.not_tried),))
    if report.not_promised:
        yield PaperSection("What the profile leaves out", (Items(report.not_promised),), folded=True)
    yield PaperSection("By which rules it is recommended", tuple(_rules(report)), folded=True)
    yield PaperSection(
        "Three words for three things", (TextTable(("word", "means"), tuple(MEANING.items()), (0.2, 0.8)),), folded=True
    )


def _marks(report: SignedReport) -> TextTable:
    """One mark for each question: what it is about can be seen before anything else is read."""
    rows = tuple((one.question, one.standing, one.short) for one in report.answers)
    return TextTable(("question", "mark", "in short"), rows, (0.36, 0.12, 0.52))


# ---- answers -------------------------------------------------------------------------------------------------------


def _reply(answer: QuestionAnswer) -> Reply:
    limits = tuple(filter(None, (answer.limit, answer.beside)))
    tried = tuple(map(_in_words, answer.tried)) or (TRIED_NOWHERE,)
    return Reply(answer.question, answer.standing, answer.short, (answer.sentence, *limits, *tried))


def _in_words(tried: Tried) -> str:
    """Where it was tried, what came out with its interval, and how much was tried there."""
    place = _PLACES[tried.place] + (f" ({tried.model})" if tried.place == OTHER_MODEL else "")
    helped = f" with {counted(tried.helpers, 'party', 'parties')} helping" if tried.helpers else ""
    if not tried.tested:
        return f"{place}{helped}: {NOT_TESTED}, because {plain_reason(tried.why)}."
    of = f", {tried.tries}" if tried.tries else ""
    at = f", at {tried.claimed}" if tried.claimed else ""
    could = f"; {tried.ideal}" if tried.standing == HELD and tried.ideal else ""
    others = _others(tried)
    since = " The software changed since." if tried.stale else ""
    return f"{place}{helped}{at}: {ENDED[tried.standing]}. {_capital(tried.measure)}: {tried.figure}{of}{could}.{others}{since}"


def _others(tried: Tried) -> str:
    """How the other attempts in the same place ended: the page shows the worst."""
    counts = dict(tried.counts or {})
    counts[tried.standing] = counts.get(tried.standing, 1) - 1
    got, kept, taught = counts.get(BROKEN, 0) + counts.get(OPEN, 0), counts.get(HELD, 0), counts.get(NOT_TESTED, 0)
    ended = {"succeeded, too": got, "did not succeed": kept, "taught nothing": taught}
    left = tuple(f"{number} {name}" for name, number in ended.items() if number)
    return f" This is the worst of {sum(counts.values()) + 1} attempts there; of the others {listed(left)}." if left else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _regulators(report: SignedReport) -> Iterator[Block]:
    """The three questions with the figures of this run, what the opinions say, and what all this does not establish."""
    if not report.regulators:
        yield Paragraph(f"{_OPINION} Nothing of this was tried on this run, because no audit of it was made.")
        return
    found = {(one.criterion, one.scope): _came_out(one) for one in report.regulators}
    rows = tuple((_capital(name), ASKED[name], *(found[name, scope] for scope in SCOPES)) for name in CRITERIA)
    yield Paragraph(_OPINION)
    yield TextTable(("question", "asks whether", "of the finished model", "of the messages"), rows, (0.13, 0.29, 0.29, 0.29))
    yield Paragraph(_LIMITS)


def _came_out(one: CriterionFacts) -> str:
    """The outcome, and the figure that stands behind it with its interval."""
    if one.outcome == NOT_TRIED:
        return NOT_TRIED
    worst = f", the largest of {one.attempts}" if one.attempts > 1 else ""
    could = f"; {one.ideal}" if one.outcome == NOT_SHOWN and one.ideal else ""
    return f"{one.outcome}: {one.figure} {one.measure}{worst}{could}"


# ---- who and what --------------------------------------------------------------------------------------------------


def _trained(report: SignedReport) -> Iterator[Block]:
    yield Paragraph(
        f"A model that sorts documents by subjects ({report.model}, {counted(report.rounds, 'round')}). "
        f"It was put together by {report.coordinator}. Protection: {_uncapital(report.profile_title)}."
    )
    yield Paragraph(_MASKED)
    if all(one.epsilon is None for one in report.parties):
        yield Paragraph(f"Took part: {listed(tuple(one.name for one in report.parties))}.")
        return
    rows = ((one.name, _epsilon(one.epsilon, one.unit), _epsilon(one.budget, "")) for one in report.parties)
    yield TextTable(("party", "spent in this run", "of a budget of"), tuple(rows), (0.3, 0.4, 0.3))


def _fingerprints(report: SignedReport) -> Iterator[Block]:
    """Of the parties' keys, and of everything that a signature is meant to cover."""
    keys = tuple((one.name, one.key) for one in report.parties if one.key)
    if keys:
        yield TextTable(("party", "key fingerprint"), keys, (0.2, 0.8))
    yield Paragraph(report.whose)
    digests = {**{f"the {name}": digest for name, digest in report.digests.items()}, **_of_audits(report)}
    yield TextTable(("fingerprint (SHA-256) of", "value"), tuple(digests.items()), (0.3, 0.7))


def _of_audits(report: SignedReport) -> dict[str, str]:
    found = {f"the audit “{plan}”": digest for plan, digest in report.audits.items()}
    return {**found, **{f"the annex {name}": digest for name, digest in report.annexes.items()}}


def _epsilon(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    return f"epsilon = {upward(value)}" + (f" per {unit}" if unit else "")


def _uncapital(text: str) -> str:
    return text[:1].lower() + text[1:]


def _roles(report: SignedReport) -> Iterator[Block]:
    yield Paragraph("A sum, or total, is what the numbers of all parties add up to. An answer is what one party sends.")
    rows = tuple((one.role, "; ".join(one.sees), "; ".join(one.promised) or "nothing") for one in report.roles)
    yield TextTable(("who", "sees", "what is promised against it"), rows, (0.16, 0.44, 0.4))
    yield Paragraph(f"Sent in this run, as its own record says: {'; '.join(report.recorded)}.")


def _rules(report: SignedReport) -> Iterator[Block]:
    rows = tuple((one.rule, "yes" if one.applies else "–", f"{one.follows}.") for one in report.rules)
    yield TextTable(("rule", "applies", "then"), rows, (0.42, 0.1, 0.48))
    yield Paragraph("The first rule that applies is the recommendation; the conditions of all that apply are listed with it.")
