"""`securetm budget plan`: several runs over the same documents under one ledger. It reads no document, and spends nothing."""

from __future__ import annotations

from typing import Annotated, Any

from securetm.cli.options import FILE, MODELS, PROFILES
from securetm.data_classes import dataclass

MOST_RUNS = 600
_WORDS = ("once", "public")
Unit = Annotated[str, "Who is protected: document or person. The person, if persons or documents per person are given."]
EachPerson = Annotated[int | None, "--documents-per-person", "Documents of one person, at most."]
Persons = Annotated[int | None, "How many persons the documents are of."]


@dataclass(frozen=True)
class PlanQuestion:
    """What is asked about runs over time, by options or as a TOML file says it. What is left out is as a run would have it."""

    profile: Annotated[str, "Privacy profile; dp-distributed, if not given.", PROFILES] = "dp-distributed"
    years: Annotated[int, "For how many years; 5, if not given."] = 5
    runs_per_year: Annotated[int, "Trainings in a year; 1, if not given."] = 1
    audits_per_year: Annotated[int, "Audits in a year."] = 0
    runs_per_audit: Annotated[int, "Trainings on the documents that one audit makes; 0: it attacks a recorded run."] = 0
    retire_after: Annotated[int, "Years after which documents are used no more; 0: never."] = 0
    words: Annotated[str, "once: the first run finds them for all; public: from a public list."] = ""
    epsilon: Annotated[float | None, "The budget of all runs together, in place of the profile's."] = None
    delta: Annotated[float | None, "Its delta."] = None
    noise: Annotated[float | None, "Noise of a run: how long does the budget last?"] = None
    rounds: Annotated[int | None, "Rounds of a run; if not given, as many as a run would ask."] = None
    model: Annotated[str, "Topic model; if not given, the one that a run would train.", MODELS] = ""
    vocabulary_size: Annotated[int, "Words in the vocabulary."] = 2000
    unit: Unit = ""
    documents: Annotated[int | None, "Documents of all parties, about: then how often you can train."] = None
    document_length: Annotated[float, "Words of a document, about; 0: not said."] = 0.0
    documents_per_person: EachPerson = None
    persons: Persons = None
    parties: Annotated[int | None, "How many parties; if not given, 5 or as many as it needs."] = None
    missing: Annotated[int | None, "How many parties may be missing from a sum."] = None
    colluding: Annotated[int | None, "How many parties may help the adversary."] = None
    ledger: Annotated[str, "Go on from what this ledger holds.", FILE] = ""

    def __post_init__(self) -> None:
        from securetm.accounting.calculator.option_checks import check, check_choice, refused

        for name in ("years", "runs_per_year", "audits_per_year", "runs_per_audit", "retire_after"):
            check(f"--{name.replace('_', '-')}", getattr(self, name))
        check_choice("--words", self.words, ("", *_WORDS))
        check("--document-length", self.document_length)
        if self.years * (self.runs_per_year + self.audits_per_year * self.runs_per_audit) > MOST_RUNS:
            problem = f"makes more than {MOST_RUNS} runs with the others"
            raise refused("--years", self.years, problem, "plan fewer years, or runs and audits in a year")
        if self.ledger and (self.epsilon is not None or self.delta is not None):
            option, value = ("--epsilon", self.epsilon) if self.epsilon is not None else ("--delta", self.delta)
            problem = "cannot be given beside --ledger, which has its own budget"
            raise refused(option, value, problem, "change the budget first: securetm budget ledger FILE --allow E")

    @property
    def years_used(self) -> int:
        return self.retire_after or self.years

    @property
    def in_one_ledger(self) -> int:
        """The most runs that one document takes part in, those of audits included."""
        return (self.runs_per_year + self.audits_per_year * self.runs_per_audit) * min(self.years, self.years_used)

    def runs(self) -> tuple[dict[str, Any], ...]:
        """All runs, in order: each in which year, of which data set, for what, and the how many-th in its ledger."""
        of_year = ["training"] * self.runs_per_year + ["audit that trains"] * (self.audits_per_year * self.runs_per_audit)
        found = []
        for year in range(self.years):
            data_set, year_of_it = divmod(year, self.years_used)
            for place, purpose in enumerate(of_year, start=1):
                number = year_of_it * len(of_year) + place
                found.append({"number": number, "year": year + 1, "data_set": data_set + 1, "purpose": purpose})
        return tuple(found)
