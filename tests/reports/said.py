"""What reports say in each situation, written out: `python -m tests.reports.said` writes it, and people read the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace as with_changes
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from msgspec.structs import replace

from securetm.auditing.attack import Estimate
from securetm.auditing.evidence import Evidence, to_keep, write_evidence
from securetm.auditing.judging import measured
from securetm.auditing.record import NOT_TESTED, REFUTED, Audit, Curve, Example, Finding, RefusalRecord
from securetm.contracts import Budget, Unit
from securetm.credentials.keys import fingerprint_of
from securetm.plans.profiles import read_profile
from securetm.reports.audits.report import audit_page
from securetm.reports.audits.wording import headline
from securetm.reports.statement import sources as report_sources
from securetm.reports.statement.annex import signed_report
from securetm.reports.statement.questions import SignedReport
from securetm.reports.statement.sources import ReportSources
from securetm.reports.statement.statement import Statement, statement_on

from .audits import AUDIT, CLAIM, FULL, IDLE, LEAK, changed, finding

PLACE = Path(__file__).parent / "written"
KEYS = {name: bytes([number]) * 32 for number, name in enumerate(("north", "south", "east", "west"))}
FINGERPRINTS = tuple(map(fingerprint_of, KEYS.values()))
SPENT: Mapping[str, Any] = {
    "epsilon": 1.9994692,
    "delta": 1e-5,
    "unit": "document",
    "budget": 2.0,
    "all_runs": 1.9994692,
    "all_runs_delta": 1e-5,
    "trial": True,
}
READER = {"threat_model": "model_reader", "adversary": "model reader"}
BROKEN_CLAIM = changed(CLAIM, verdict=REFUTED, measured=LEAK.outcome.measured)


def audit_of(*findings: Finding) -> Audit:
    """An audit of the run that found this."""
    return replace(AUDIT, findings=findings, made="2026-11-23")


def sources(profile: str = "masked", *audits: Audit, model: str = "prodlda", **changes: Any) -> ReportSources:
    """A finished run of four parties, as its folder would give it."""
    read = read_profile(profile)
    run = ReportSources(
        run="trial",
        begun="2026-11-22",
        software="0.1.0",
        model=model,
        rounds=7,
        profile=read,
        plan_digest="ab" * 32,
        federation="",
        members=tuple(KEYS),
        keys=KEYS,
        spent=tuple({"party": name, **(SPENT if read.budget else {"epsilon": None})} for name in KEYS),
        run_digest="cd" * 32,
        model_digest="ef" * 32,
        channels=(("request", 28, 4_411), ("sealed", 28, 1_432)),
        audits=tuple((one, "01" * 32) for one in audits),
    )
    return with_changes(run, **changes)


def spending(**changes: Any) -> tuple[dict[str, Any], ...]:
    """What each party spent."""
    return tuple({**SPENT, "party": name, **changes} for name in KEYS)


def report(profile: str = "masked", *findings: Finding, model: str = "prodlda", **changes: Any) -> SignedReport:
    """The report of that run."""
    return signed_report(sources(profile, *([audit_of(*findings)] if findings else []), model=model, **changes))


def keep(folder: Path, *findings: Finding) -> None:
    """Keeps these findings, which are of one profile and model, as trials of our own."""
    run = findings[0].run
    kept = tuple(to_keep(changed(one, bound={"trial": "x"}, epsilon=one.run.epsilon)) for one in findings)
    write_evidence(Evidence(run.profile, run.model, "full", kept), folder)


def kept(*findings: Finding, of: Callable[[], SignedReport], fresh: bool = True) -> SignedReport:
    """The report where these findings, and nothing else, are kept."""
    with pytest.MonkeyPatch.context() as patched, TemporaryDirectory() as place:
        patched.setattr(report_sources, "evidence_folder", lambda: Path(place))
        if fresh:
            patched.setattr("securetm.reports.audits.threats.changed_since", lambda *_: ())
        for one in findings:
            keep(Path(place), one)
        return of()


# ---- the page to sign ----------------------------------------------------------------------------------------------------


def of_signed(found: SignedReport) -> Iterator[str]:
    """The lines that differ between situations."""
    yield from (found.headline, f"=> {found.recommendation}")
    for one in found.answers:
        yield f"{one.question} [{one.standing}] {one.short}"
        if one.standing != NOT_TESTED or one.tried:
            yield from (f"  {line}" for line in (one.sentence, one.limit) if line)
        for tried in one.tried:
            at = f", at {tried.claimed}" if tried.claimed else ""
            yield f"  - {tried.place}, {tried.model}: {tried.standing}, {tried.figure}{at}{', stale' if tried.stale else ''}"
    yield from (f"spent: {line}" for line in found.spent)
    yield from (f"rule: {one.rule}" for one in found.rules if one.applies)


def at_epsilon(found: Finding, epsilon: float | None, unit: str) -> Finding:
    """The finding under that budget."""
    return changed(found, profile="dp-distributed", epsilon=epsilon, epsilon_unit=unit)


def signed_cases() -> Iterator[tuple[str, SignedReport]]:
    """Each situation, and the report of it."""

    def none(*found: Any, **more: Any) -> SignedReport:
        return kept(of=lambda: report(*found, **more))

    private = "dp-distributed"
    yield "A promise that an attack broke", none("masked", BROKEN_CLAIM)
    yield "A leak that nobody promised to close", none("masked", LEAK)
    yield "An attack that failed", none("masked", changed(CLAIM, spent="4 rounds, 300 documents"))
    yield "No audit", none("masked")
    yield "A baseline alone", none("masked", AUDIT.findings[0])
    yield "Two who work together, beside one of them", none("masked", LEAK, changed(CLAIM, helpers=2))
    yield "Two who work together, alone", none("masked", changed(CLAIM, helpers=2))
    reader = changed(CLAIM, **READER, profile=private)
    for epsilon in (2.0, 8.0, 80.0):
        yield f"A model under epsilon {epsilon:g}", none(private, reader, spent=spending(epsilon=epsilon))
    yield "One run of three, alone", none(private, spent=spending(epsilon=3.2, all_runs=3.2))
    yield "One run of three, with all runs", none(private, spent=spending(epsilon=3.2, all_runs=5.8, trial=False))
    begun = spending(epsilon=3.2, all_runs=5.8, all_runs_delta=0.2)
    yield "A trial that started from what another run had paid for", none(private, spent=begun)
    because = {"all_runs": None, "unbounded_because": "run march (profile 'masked' has no bound)", "trial": False}
    yield "A run after one without a bound", none(private, spent=spending(epsilon=3.2, **because))
    yield (
        "Kept results that are stale",
        kept(CLAIM, changed(LEAK, model="lda", profile="masked"), of=lambda: report("masked"), fresh=False),
    )
    yield "Kept results of another model", kept(changed(LEAK, model="prodlda"), of=lambda: report(model="lda"))
    both = (changed(LEAK, model="prodlda"), changed(CLAIM, model="lda"))
    yield "Kept results of this model and of another", kept(*both, of=lambda: report(model="lda"))
    yield "Kept results beside an audit", kept(LEAK, of=lambda: report("masked", CLAIM))
    yield "A promise that was broken with another model", kept(BROKEN_CLAIM, of=lambda: report(model="lda"))
    for epsilon_of, unit in ((SPENT["epsilon"], "document"), (6.607284489651096, "document"), (2.0, "person"), (None, "")):
        for name, one in (("failed", CLAIM), ("succeeded", LEAK)):
            found = at_epsilon(one, epsilon_of, unit)
            yield f"Kept: it {name} at epsilon {epsilon_of} per {unit}", kept(found, of=lambda: report(private))
    agreed = at_epsilon(CLAIM, 7.99, "document")
    yield "A coordinator who sees no ledger", kept(agreed, of=lambda: report(private, spent=()))
    person = Budget(Unit.PERSON, 8.0, 1e-5)
    yield "A coordinator of a budget for persons", kept(agreed, of=lambda: report(private, spent=(), budget=person))
    bare = changed(LEAK, profile="open", model="lda", **READER, baseline=True)
    for profile in ("masked", private):
        yield f"A model under {profile}, and one without protection", kept(bare, of=partial(report, profile, model="lda"))


# ---- the statement -------------------------------------------------------------------------------------------------------


def stated(profile: str = "masked", **changes: Any) -> Statement:
    """The statement on such a run."""
    released = {"model.safetensors": "ab" * 32, "topics.csv": "cd" * 32}
    usual = {"budget": read_profile(profile).budget, "ended": "2026-11-24", "released": released}
    return statement_on(sources(profile, **{**usual, **changes}))


def of_stated(found: Statement) -> Iterator[str]:
    """The lines that differ between situations."""
    yield f"bounded: {found.bounded}; {found.unit}; {found.epsilon}; {found.neighbours}"
    for name in ("bound", "failure", "not_covered", "settings"):
        yield from (f"{name}: {line}" for line in getattr(found, name))


def statement_cases() -> Iterator[tuple[str, Statement]]:
    """Each situation, and the statement on it."""
    one = {"party": "north", "epsilon": 2.0, "delta": 1e-5, "unit": "document", "budget": 8.0, "trial": False}
    private = "dp-distributed"
    yield "No bound", stated("masked")
    yield "A trial under a budget", stated("dp-central")
    yield "All runs of a ledger", stated(private, spent=({**one, "all_runs": 3.20001, "all_runs_delta": 1.2349e-5},))
    yield "All runs of a ledger, far more", stated(private, spent=({**one, "all_runs": 5.0, "all_runs_delta": 1e-5},))
    because = {**one, "all_runs": None, "unbounded_because": "run march (profile 'masked' has no bound)"}
    yield "An earlier run without a bound", stated(private, spent=(because,))
    words = {"epsilon": 8.0, "delta": 0.0, "unit": "word", "budget": 8.0, "all_runs": 8.0, "all_runs_delta": 0.0}
    budget = Budget(unit=Unit.WORD, epsilon=8.0, delta=0.0)
    yield "A budget of words", stated("iftm", spent=({"party": "north", **words},), budget=budget)


# ---- an audit ------------------------------------------------------------------------------------------------------------


def headline_cases() -> Iterator[tuple[str, Audit]]:
    """Each situation, and the audit."""
    idle, elsewhere = changed(IDLE, claimed=True), changed(CLAIM, profile="fortress")
    for name, findings in {
        "Nothing was tried": (),
        "A baseline": (finding(),),
        "A claim that held": (finding(), CLAIM),
        "A claim that held, and one of which nothing was learned": (CLAIM, CLAIM, idle),
        "Nothing was learned": (idle,),
        "Nothing was learned of another profile": (CLAIM, changed(idle, profile="fortress")),
        "Two claims that held": (finding(), CLAIM, CLAIM, elsewhere, idle),
        "A broken claim": (changed(CLAIM, verdict=REFUTED),),
        "A leak that nobody claims to close": AUDIT.findings,
    }.items():
        yield name, replace(AUDIT, findings=findings)
    broken = RefusalRecord("masked", "other weights", 0, 0, False, "", "")
    yield "A lie that was not refused", replace(AUDIT, refusals=(*FULL.refusals, broken))


BLOCKS = "p li tr dt dd summary figcaption caption h1 h2 h3 h4 section pre div svg".split()


class Lines(HTMLParser):
    """What a page shows, a row or a paragraph a line."""

    text, shown = "", True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shown = tag not in ("style", "title")
        self.text += "\n" if tag in BLOCKS else " | " if tag in ("td", "th") else " "

    def handle_data(self, data: str) -> None:
        self.text += " ".join(f"_{data}_".split())[1:-1] if self.shown else ""


def of_page(audit: Audit) -> str:
    """The page as lines."""
    lines = Lines()
    lines.feed(audit_page(audit, 2))
    return "\n".join(" ".join(line.strip(" |").split()) for line in lines.text.splitlines() if line.strip(" |")) + "\n"


def everything() -> Audit:
    """An audit with all that a page can show."""
    unit = "epsilon that one sum claims"
    shares = measured("share of one sum's epsilon that is shown", unit, Estimate(0.92, 0.85, 0.99, 10.8), 0.95)
    ideal = Curve("epsilon", "an ideal attacker, on average", (4.0, 4.7), (3.5, 4.4))
    of_words = replace(finding().outcome.measured, unit="count of a word")
    codes = (Example("north: ", "", False), Example("south: code", "", False))
    noised = {"epsilon": 1.0526, "delta": 1e-5, "epsilon_unit": "document", "profile": "dp-central", "baseline": False}
    private = "the total is differentially private"
    more = (
        finding(measured=shares, chance=shares, curves=(ideal, Curve("epsilon", "shown", (4.7,), (4.0,))), epsilon=4.75),
        finding(measured=shares, chance=shares),
        finding(examples=codes, measured=of_words, epsilon=8.0001, epsilon_unit="word"),
        *(finding(**noised, claim=private, claimed=claimed) for claimed in (False, True)),
        finding(**noised, claim="sees only sums", claimed=False),
        changed(CLAIM, verdict=REFUTED),
    )
    went_on = replace(FULL.refusals[0], refused=False, by="", reason="")
    lie = RefusalRecord("masked", "other weights", 0, 0, False, "", "")
    return replace(FULL, findings=(*FULL.findings, *more), refusals=(*FULL.refusals, went_on, lie))


def written() -> dict[str, str]:
    """All texts, by the name of their file."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(report_sources, "evidence_folder", lambda: PLACE / "no evidence")
        cases = {
            "page_to_sign": [(name, of_signed(found)) for name, found in signed_cases()],
            "statement": [(name, of_stated(found)) for name, found in statement_cases()],
            "headlines": [(name, iter([headline(found)])) for name, found in headline_cases()],
        }
    texts = {name: "\n".join(_section(*case) for case in found) for name, found in cases.items()}
    return {**texts, "audit_page": of_page(everything())}


def _section(name: str, lines: Iterator[str]) -> str:
    return "\n".join([f"## {name}", "", *lines, ""])


if __name__ == "__main__":
    for name, text in written().items():
        (PLACE / f"{name}.md").write_text(text, "utf-8")
