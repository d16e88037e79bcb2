"""`securetm budget`: what a training spends, what a budget allows, what a ledger holds, whether a model will be of use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli.budget_plan import EachPerson, Persons, PlanQuestion, Unit
from securetm.cli.command import Group, OptionsOf, Output, member
from securetm.cli.options import ARGUMENT, MODELS, PROFILES
from securetm.data_classes import asdict, dataclass

if TYPE_CHECKING:
    from securetm.accounting.calculator.budget_report import BudgetReport, Question
    from securetm.accounting.calculator.persons import People
    from securetm.stages import Stages

_ENGLISH = "english"
_OPTIONS = {"length": "--document-length"}  # whose names differ from those of the forecast's settings
Html = Annotated[Path | None, "Write all of it to this file too, as one page that loads nothing."]
Documents = Annotated[int | None, "Documents of all parties together."]
Batch = Annotated[int, "Documents in a batch of all parties together; their mean number, if Poisson-sampled."]
Epochs = Annotated[float, "How often the documents are gone through."]
Noise = Annotated[float | None, "Standard deviation of the noise over the clipping bound."]
Delta = Annotated[float, "Probability that the promise fails; well below 1 / documents."]
Sampling = Annotated[str, "How batches are drawn: poisson or shuffled."]
Tokens = Annotated[int | None, "Tokens of the longest document; its promise covers them all."]
Parties = Annotated[int, "How many parties take part."]
Threshold = Annotated[int | None, "How many must remain in a sum; all of them, if not given."]
Epsilon = Annotated[float | None, "In place of --noise: the least noise for this epsilon."]
Missing = Annotated[int | None, "How many parties may be missing from a sum, in place of --threshold."]
Colluding = Annotated[int, "How many parties may help the adversary."]
Dimension = Annotated[int, "Coordinates of a vector."]
Length = Annotated[float, "--l2", "Bound on one document's row, in steps of the integer grid."]


@dataclass(frozen=True)
class WhoseDocuments:
    """Whose documents a question is about: as told, or as counted in a corpus."""

    unit: Unit = ""
    documents_per_person: EachPerson = None
    persons: Persons = None
    corpus: Annotated[Path | None, "Count documents and persons in this corpus instead; the counts stay here."] = None
    person: Annotated[str | None, "The column of that corpus with whose document it is."] = None

    def of(self, documents: int | None) -> People:
        from securetm.accounting.calculator.option_checks import refused
        from securetm.accounting.calculator.persons import People

        given = {"--documents": documents, "--documents-per-person": self.documents_per_person, "--persons": self.persons}
        if self.corpus is None:
            if self.person is not None:
                raise refused("--person", self.person, "names a column, and no corpus is given", "give the file with --corpus")
            return People(self.unit, documents, self.documents_per_person, self.persons)
        for option, value in given.items():
            if value is not None:
                raise refused(
                    option, value, "cannot be given beside --corpus, which is counted", f"leave --corpus or {option} away"
                )
        return _counted(self.unit, self.corpus, self.person)

    def with_documents(self, documents: int | None) -> dict[str, Any]:
        """The documents and persons of a training; a question that needs their number refuses to go on without."""
        from securetm.accounting.calculator.option_checks import refused

        people = self.of(documents)
        if people.documents is None:
            raise refused("--documents", None, "", "give --documents N, or count them: --corpus FILE")
        return asdict(people)


def _counted(unit: str, corpus: Path, column: str | None) -> People:
    import numpy as np

    from securetm.accounting.calculator.option_checks import refused
    from securetm.accounting.calculator.persons import PERSON, People
    from securetm.corpus.readers import read_corpus
    from securetm.corpus.tokeniser import RECOMMENDED, Tokeniser

    found = read_corpus(corpus, person=column, tokeniser=Tokeniser(**RECOMMENDED))
    if len(found) == 0:
        raise refused("--corpus", str(corpus), "holds no document with a word", "give a file with documents, or --documents N")
    if found.persons is None:
        if unit == PERSON:
            problem = "has no column called person, and persons are to be protected"
            raise refused("--corpus", str(corpus), problem, "name the column of whose document it is: --person COLUMN")
        return People(unit, len(found))
    each = np.unique(found.persons, return_counts=True)[1]
    return People(unit, len(found), int(each.max()), len(each), counted=True)


@dataclass(frozen=True)
class NoiseGroup:
    """Who adds the noise in shares, where somebody says how many parties there are."""

    parties: Annotated[int | None, "How many parties add the noise in shares."] = None
    missing: Missing = None
    threshold: Threshold = None
    colluding: Colluding = 0

    def told(self) -> tuple[int, int, int] | None:
        """How many parties, how many must remain and how many may help; nothing where nobody says it."""
        from securetm.accounting.calculator.option_checks import check, refused, remaining

        if self.parties is None:
            for option, value in {
                "--threshold": self.threshold,
                "--missing": self.missing,
                "--colluding": self.colluding or None,
            }.items():
                if value is not None:
                    raise refused(option, value, "is about parties, and their number is not given", "give --parties N")
            return None
        check("--parties", self.parties)
        return self.parties, remaining(self.parties, self.threshold, self.missing), self.colluding


def _asked(question: Callable[[Stages], Question], html: Path | None, out: Output) -> dict[str, Any]:
    from securetm.accounting.calculator.budget_report import report

    return _answered(lambda progress: report(question(progress), progress), html, out)


def _answered(compute: Callable[[Stages], BudgetReport], html: Path | None, out: Output) -> dict[str, Any]:
    from securetm.reports.budget import show_report, write_page

    with out.late_bars() as progress:
        report = compute(progress)
    show_report(report, out.results)
    if html is not None:
        write_page(report, html)
        out.note(f"Written to {html}")
    return report.record()


@member("What a training by noised gradients spends.", "--documents 18748 --batch 256 --epochs 20 --noise 1.2 --delta 1e-6")
def dp_sgd(
    out: Output,
    batch: Batch,
    epochs: Epochs,
    delta: Delta,
    documents: Documents = None,
    noise: Noise = None,
    epsilon: Epsilon = None,
    sampling: Sampling = "poisson",
    tokens: Tokens = None,
    whose: WhoseDocuments = WhoseDocuments(),
    group: NoiseGroup = NoiseGroup(),
    html: Html = None,
) -> dict[str, Any]:
    """Says what a training by clipped, noised gradients spends per document or per person."""
    from securetm.accounting.calculator.mechanisms import in_shares, noise_or_epsilon

    given = {**whose.with_documents(documents), "batch": batch, "epochs": epochs, "delta": delta, "sampling": sampling}
    shared = group.told()
    asked = noise_or_epsilon(noise, epsilon, {**given, "tokens": tokens})
    return _asked(lambda progress: in_shares(asked.question(progress), shared), html, out)


@member(
    "The noise, epochs or batch for an epsilon.",
    "--for noise --epsilon 3 --documents 18748 --batch 256 --epochs 20 --delta 1e-6",
)
def solve(
    out: Output,
    for_: Annotated[str, "--for", "What is sought: noise, epochs or batch."],
    epsilon: Annotated[float, "Epsilon per document or person that may be spent."],
    delta: Delta,
    documents: Documents = None,
    batch: Annotated[int | None, "Documents in a batch, unless sought."] = None,
    epochs: Annotated[float | None, "How often the documents are gone through, unless sought."] = None,
    noise: Annotated[float | None, "Noise over the clipping bound, unless sought."] = None,
    sampling: Sampling = "poisson",
    tokens: Tokens = None,
    whose: WhoseDocuments = WhoseDocuments(),
    group: NoiseGroup = NoiseGroup(),
    html: Html = None,
) -> dict[str, Any]:
    """Finds the least noise, the most epochs or the largest batch for an epsilon."""
    from securetm.accounting.calculator.mechanisms import Target, in_shares

    numbers = {"batch": batch, "epochs": epochs, "noise": noise, "delta": delta, "sampling": sampling, "tokens": tokens}
    target = Target.of(for_, epsilon, {**whose.with_documents(documents), **numbers})
    shared = group.told()
    return _asked(lambda progress: in_shares(target.question(progress), shared), html, out)


@member("Noise on word occurrences, and what it is worth.", "--epsilon-per-word 8 --words 60")
def laplace(
    out: Output,
    epsilon_per_word: Annotated[float | None, "Epsilon of one release for one word occurrence."] = None,
    scale: Annotated[float | None, "Or the scale of the Laplace noise on a count."] = None,
    releases: Annotated[int, "How often noised counts are given away."] = 1,
    words: Annotated[list[int] | None, "Length of a document; may be given several times."] = None,
    delta: Annotated[float, "Probability that the promise fails; 0: never."] = 0.0,
    html: Html = None,
) -> dict[str, Any]:
    """Says what Laplace noise on every word occurrence spends, and what that is for a document."""
    from securetm.accounting.calculator.mechanisms import WordNoise, word_noise

    noise = word_noise(epsilon_per_word, scale, releases, tuple(words or WordNoise.words), delta)
    return _asked(noise.question, html, out)


@member(
    "Shares of noise; the price of dropout and collusion.",
    "--parties 5 --threshold 4 --noise 1 --rate 0.01 --rounds 500 --delta 1e-6",
)
def distributed(
    out: Output,
    parties: Parties,
    noise: Annotated[float, "Noise left when as many as allowed drop out and collude, over the row's bound."],
    rounds: Annotated[int, "How many sums are opened."],
    delta: Delta,
    threshold: Threshold = None,
    colluding: Colluding = 0,
    rate: Annotated[float, "Probability that a document takes part in a round, by secret coins."] = 1.0,
    dimension: Dimension = 100_000,
    l2: Length = 65_536.0,
    distribution: Annotated[str, "Of the shares: discrete_gaussian or skellam."] = "discrete_gaussian",
    documents: Annotated[int | None, "Documents of all parties, to judge delta by."] = None,
    missing: Missing = None,
    whose: WhoseDocuments = WhoseDocuments(),
    html: Html = None,
) -> dict[str, Any]:
    """Says what shares of noise under hidden sums spend, and what dropout and collusion cost."""
    from securetm.accounting.calculator.mechanisms import Shares
    from securetm.accounting.calculator.option_checks import remaining
    from securetm.mechanisms.noise_shares import NoiseShares

    people = whose.of(documents)
    remain = remaining(parties, threshold, missing)
    shares = Shares(
        parties, remain, colluding, noise, l2, dimension, rate, rounds, delta, distribution, people.documents, people
    )
    return _asked(lambda _: shares.question(NoiseShares), html, out)


@member(
    "Central, local and distributed noise side by side.",
    "--documents 18748 --batch 256 --epochs 5 --noise 1.2 --delta 1e-6 --threshold 4",
)
def compare(
    out: Output,
    batch: Batch,
    epochs: Epochs,
    delta: Delta,
    documents: Documents = None,
    noise: Noise = None,
    epsilon: Epsilon = None,
    parties: Parties = 5,
    threshold: Threshold = None,
    missing: Missing = None,
    colluding: Colluding = 0,
    dimension: Dimension = 100_000,
    l2: Length = 65_536.0,
    whose: WhoseDocuments = WhoseDocuments(),
    html: Html = None,
) -> dict[str, Any]:
    """Sets central, local and distributed noise side by side for one training."""
    from securetm.accounting.calculator.mechanisms import compared, noise_or_epsilon
    from securetm.accounting.calculator.option_checks import remaining
    from securetm.mechanisms.noise_shares import NoiseShares

    given = {**whose.with_documents(documents), "batch": batch, "epochs": epochs, "delta": delta}
    group = (parties, remaining(parties, threshold, missing), colluding)
    asked = noise_or_epsilon(noise, epsilon, given)
    return _asked(lambda progress: compared(asked, group, dimension, l2, NoiseShares, progress), html, out)


@member("What a run under a profile spends.", "dp-distributed --documents 100000 --persons 20000 --epsilon 4 --delta 1e-6")
def profile(
    out: Output,
    name: Annotated[str, ARGUMENT, "A profile's name, or a file ending in .toml.", PROFILES],
    documents: Annotated[int | None, "Documents of all parties, about."] = None,
    rounds: Annotated[int | None, "Training rounds; if not given, as many as a run would ask."] = None,
    vocabulary_size: Annotated[
        int | None, "Words in the vocabulary; if not given, as many as a run would list, or 2,000."
    ] = None,
    model: Annotated[str, "Topic model; if not given, the one that a run would train.", MODELS] = "",
    parties: Annotated[int | None, "How many parties; if not given, 5 or as many as it needs."] = None,
    vocabulary: Annotated[str | None, "A language: its public list of words, and how many of them can be expected."] = None,
    document_length: Annotated[
        float, "Words of a document, for what can be expected; 0: nobody says it, and words are as in 100."
    ] = 0.0,
    epsilon: Annotated[float | None, "The budget, in place of the profile's; sizes the noise."] = None,
    delta: Annotated[float | None, "The delta, in place of the profile's."] = None,
    noise: Annotated[float | None, "Noise over the bound on a row, in place of the profile's."] = None,
    missing: Annotated[int | None, "How many parties may be missing from a sum."] = None,
    colluding: Annotated[int | None, "How many parties may help the adversary."] = None,
    start: Annotated[str, "Where the training begins: plain, public or moments, which asks first."] = "",
    whose: WhoseDocuments = WhoseDocuments(),
    html: Html = None,
) -> dict[str, Any]:
    """Says what a run under a profile spends, and how many rounds its budget lasts."""
    from securetm.cli.budget_profile import ProfileQuestion

    asked = ProfileQuestion(
        name,
        parties,
        rounds,
        vocabulary_size,
        model,
        vocabulary,
        document_length,
        whose.of(documents),
        epsilon,
        delta,
        noise,
        missing,
        colluding,
        start=start,
    )
    return _asked(asked.question, html, out)


@member("Whether a model will be of use, before anything is spent.", "--documents 20000 --epsilon 3")
def forecast(
    out: Output,
    documents: Annotated[int, "Documents of all parties, about."],
    profile: Annotated[str, "Privacy profile.", PROFILES] = "dp-distributed",
    epsilon: Annotated[float | None, "Budget; if not given, the profile's."] = None,
    delta: Annotated[float | None, "Its delta; if not given, the profile's."] = None,
    unit: Unit = "",
    documents_per_person: EachPerson = None,
    persons: Persons = None,
    parties: Annotated[int | None, "How many parties; if not given, 5 or as many as it needs."] = None,
    model: Annotated[str, "Topic model.", MODELS] = "lda-vi",
    start: Annotated[str | None, "Of lda-vi: public, plain or moments; if not given, as a run would begin."] = None,
    words: Annotated[int | None, "Words on the list; if not given, as a run would list, and the best is sought."] = None,
    topics: Annotated[int | None, "Topics; 20 if not given, and the best is sought."] = None,
    rounds: Annotated[int, "Rounds; 0: as many as the rule says."] = 0,
    length: Annotated[float, "--document-length", "--length", "Words of a document on the list, about; 0: any length."] = 0.0,
    vocabulary: Annotated[str, "A language, such as english: the words are those of its public list, which fit worse."] = "",
    general_list: Annotated[bool, "--general-list", "The same as --vocabulary english."] = False,
) -> dict[str, Any]:
    """Forecasts from public numbers whether a model under a budget will be of use.

    Where model, start, words, topics and rounds are left open, it speaks of the best ones, and prints a run with these.
    """
    from securetm.accounting.calculator.option_checks import refused
    from securetm.accounting.calculator.persons import People
    from securetm.accounting.delta_limits import sentence_delta
    from securetm.cli.budget_profile import ProfileQuestion
    from securetm.corpus.languages import language_code
    from securetm.corpus.word_vectors import installed_vectors
    from securetm.errors import BadSetting
    from securetm.models import MODELS
    from securetm.plans.forecast import LDA_VI, TOPICS_TRIED, WORDS_TRIED, choose_settings
    from securetm.reports.forecast import show_forecast

    people = People(unit, documents, documents_per_person, persons)
    MODELS.find(model)  # which of them were tried is the forecast's to say
    language = vocabulary or (_ENGLISH if general_list else "")
    if language and language_code(language) is None:
        raise refused("--vocabulary", language, "is no language of which there is a list", "give english, german, or de")
    asked = ProfileQuestion(profile, parties, language=language, length=length, people=people, epsilon=epsilon, delta=delta)
    listed = asked.listed_if_open if words is None else words
    try:
        setting = asked.setting(model=model, start=start, topics=topics, words=listed, rounds=rounds)
    except BadSetting as mistake:
        option = _OPTIONS.get(mistake.name, f"--{mistake.name.replace('_', '-')}")
        raise refused(option, mistake.value, mistake.problem, mistake.instead, mistake.known) from mistake
    chosen = choose_settings(
        setting,
        () if words else WORDS_TRIED,
        () if topics else TOPICS_TRIED,
        vectors=installed_vectors() is not None,
        open_to_best=not (words or topics or rounds or start) and model == LDA_VI,
    )
    best = (chosen.best or chosen.asked).setting
    warning, run = sentence_delta(best.delta, people.units, people.protected), asked.run_with(best)
    show_forecast(chosen, out.results, [warning] if warning else [], run)
    budget = {"epsilon": setting.epsilon, "delta": setting.delta, "unit": people.protected}
    return {**budget, **chosen.record(), "warnings": [warning] if warning else [], "run": run}


@member("What each run may spend over years.", "--years 5 --epsilon 8 --delta 1e-6 --documents 20000 --words public")
def plan(
    out: Output,
    given: Annotated[dict[str, Any], OptionsOf(PlanQuestion)],
    file: Annotated[Path | None, ARGUMENT, "A TOML file with these settings; options come before it."] = None,
    html: Html = None,
) -> dict[str, Any]:
    """Says what each of several runs over the same documents may spend under one ledger, and what is left after each.

    With --documents it answers how often you can train and still have a model of use, by the forecast.
    """
    from securetm.cli.budget_runs import question_of
    from securetm.settings import from_table, placed, read_toml

    table = read_toml(file) if file else {}
    with placed(file, given):
        question = from_table(PlanQuestion, {**table, **given}, str(file.name) if file else "securetm budget plan")
    return _asked(partial(question_of, question), html, out)


@member("What a party's ledger holds.", "north.ledger")
def ledger(
    out: Output,
    file: Annotated[Path, ARGUMENT, "A party's ledger, or the folder of a run or of ledgers; all is read and left as it is."],
    allow: Annotated[float | None, "Change the party's own budget to this epsilon; an entry says so."] = None,
    html: Html = None,
) -> dict[str, Any]:
    """Says what a party's ledger holds, and whether it has all that files beside it remember of it."""
    from securetm.accounting.calculator.ledger_report import ledger_report
    from securetm.accounting.ledger import Ledger
    from securetm.errors import BadSetting
    from securetm.runs.remembered_heads import ledgers_at, seen_beside

    files = ledgers_at(file)
    if len(files) > 1 and (allow is not None or html is not None):
        problem = f"holds {len(files)} ledgers, and --allow or --html is for one"
        raise BadSetting("securetm budget ledger", "FILE", str(file), problem)
    if allow is not None:
        Ledger.reopen(files[0], allow).close()
    records = [_answered(partial(ledger_report, one, seen=seen_beside(one)), html, out) for one in files]
    return records[0] if len(records) == 1 else {"ledgers": records}


@member("All runs over the same documents, and when the budget ends.", "homes/hospital-a")
def series(
    out: Output,
    place: Annotated[Path, ARGUMENT, "A party's home, or one ledger.", {"metavar": "HOME"}],
    per_year: Annotated[float, "Runs in a year from now on; else as often as so far.", {"min": 0.0, "max": 1000.0}] = 0.0,
    html: Html = None,
) -> dict[str, Any]:
    """Shows the runs over a data set as one series: what each added, its quality, what is left of the budget, when it ends.

    The forecast counts runs like the last one, by the rule of the ledger itself. It spends nothing.
    """
    from securetm.accounting.calculator.series import series_of
    from securetm.reports.budget import series_document, series_facts
    from securetm.runs.kept_runs import runs_in
    from securetm.runs.remembered_heads import ledgers_at

    kept = {Path(one.directory).name: one for one in (runs_in(place) if place.is_dir() else ())}
    found = [series_of(path, per_year) for path in ledgers_at(place)]
    shown = series_document(found, kept)
    out.results.print(shown)
    if html is not None:
        from securetm.reports.files import write_report
        from securetm.reports.pages import in_html

        write_report(html, in_html(shown))
    return {"series": [series_facts(one, kept) for one in found]}


def _about(
    out: Output,
    context: typer.Context,
    html: Annotated[Path | None, "Write a page with sliders to this file; the options below are where they stand."] = None,
    documents: Documents = None,
    documents_per_person: EachPerson = None,
    persons: Persons = None,
    unit: Unit = "",
    delta: Annotated[float, "Probability that the promise fails."] = 1e-6,
    noise: Annotated[float, "Noise over the bound on a row."] = 4.0,
    epsilon: Annotated[float, "Epsilon that may be spent."] = 3.0,
    rounds: Annotated[int, "Training rounds."] = 4,
    parties: Parties = 5,
    missing: Annotated[
        int | None, "How many parties may be missing from a sum; if not given, as a profile is sized for."
    ] = None,
    colluding: Annotated[
        int | None, "How many parties may help the adversary; if not given, as a profile is sized for."
    ] = None,
) -> dict[str, Any] | None:
    """Computes privacy budgets: what is spent, what a budget allows, and what it means.

    Every figure is an upper bound, by privacy loss distributions (PLD), Renyi divergences (RDP) or pure sums. The Gaussian
    approximation (GDP) is not offered, because it understates what is spent, at times to a fifth.

    With --html it writes a page on which people move sliders for all of this. The page needs no network.
    """
    if context.invoked_subcommand is not None or html is None:
        for name in context.params:
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                from securetm.accounting.calculator.option_checks import refused

                option = f"--{name.replace('_', '-')}"
                instead = f"put {option} behind the command; alone, `securetm budget --html FILE` writes the page with sliders"
                raise refused(option, str(context.params[name]), "is an option of the page with sliders here", instead)
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())
        return None
    from securetm.accounting.calculator.option_checks import check
    from securetm.accounting.calculator.persons import People
    from securetm.reports.budget_sliders import SliderStart, sized_for, write_sliders

    check("--parties", parties)
    usual_missing, usual_colluding = sized_for(parties) or (0, 0)
    start = SliderStart(
        people=People(unit, documents, documents_per_person, persons),
        delta=delta,
        noise=noise,
        epsilon=epsilon,
        rounds=rounds,
        parties=parties,
        missing=usual_missing if missing is None else missing,
        colluding=usual_colluding if colluding is None else colluding,
    )
    write_sliders(start, html)
    out.note(f"Written to {html}")
    return {"page": str(html)}


budget = Group(
    "budget",
    (dp_sgd, solve, laplace, distributed, compare, profile, forecast, plan, ledger, series),
    _about,
)
