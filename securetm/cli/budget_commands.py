"""`securetm budget`: what a training spends, what a budget allows, what a ledger holds. It reads no document.

Lower layers compute it. They are imported when a command runs, because importing them takes long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from securetm.cli import completion
from securetm.cli.budget_answer import answer, shown
from securetm.cli.budget_people import Counted, EachPerson, PersonColumn, Persons, Unit, documents_of, group_of, people_of
from securetm.cli.budget_plan import plan
from securetm.cli.forecast_command import forecast
from securetm.cli.json_output import Json, print_json

Html = Annotated[Path | None, typer.Option(help="Write all of it to this file too, as one page that loads nothing.")]
Documents = Annotated[int | None, typer.Option(help="Documents of all parties together.")]
Batch = Annotated[
    int, typer.Option(help="Documents in a batch of all parties together; their mean number, if Poisson-sampled.")
]
Epochs = Annotated[float, typer.Option(help="How often the documents are gone through.")]
Noise = Annotated[float | None, typer.Option(help="Standard deviation of the noise over the clipping bound.")]
Delta = Annotated[float, typer.Option(help="Probability that the promise fails; well below 1 / documents.")]
Sampling = Annotated[str, typer.Option(help="How batches are drawn: poisson or shuffled.")]
Tokens = Annotated[int | None, typer.Option(help="Tokens of the longest document; its promise covers them all.")]
Parties = Annotated[int, typer.Option(help="How many parties take part.")]
Threshold = Annotated[int | None, typer.Option(help="How many must remain in a sum; all of them, if not given.")]
Epsilon = Annotated[float | None, typer.Option(help="In place of --noise: the least noise for this epsilon.")]
Among = Annotated[int | None, typer.Option("--parties", help="How many parties add the noise in shares.")]
Missing = Annotated[int | None, typer.Option(help="How many parties may be missing from a sum, in place of --threshold.")]
Colluding = Annotated[int, typer.Option(help="How many parties may help the adversary.")]
Dimension = Annotated[int, typer.Option(help="Coordinates of a vector.")]
Length = Annotated[float, typer.Option("--l2", help="Bound on one document's row, in steps of the integer grid.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    budget = typer.Typer(rich_markup_mode=None, add_completion=False)
    budget.callback(invoke_without_command=True, epilog=f"Example: securetm budget dp-sgd {_COMMANDS['dp-sgd'][2]}")(_alone)
    for name, (command, summary, example) in _COMMANDS.items():
        budget.command(name, short_help=summary, epilog=f"Example: securetm budget {name} {example}")(command)
    app.add_typer(budget, name="budget", short_help="Compute what privacy costs.")


def _alone(
    context: typer.Context,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with sliders to this file; the options below are where they stand.")
    ] = None,
    documents: Documents = None,
    documents_per_person: EachPerson = None,
    persons: Persons = None,
    unit: Unit = "",
    delta: Annotated[float, typer.Option(help="Probability that the promise fails.")] = 1e-6,
    noise: Annotated[float, typer.Option(help="Noise over the bound on a row.")] = 4.0,
    epsilon: Annotated[float, typer.Option(help="Epsilon that may be spent.")] = 3.0,
    rounds: Annotated[int, typer.Option(help="Training rounds.")] = 4,
    parties: Parties = 5,
    missing: Annotated[
        int | None, typer.Option(help="How many parties may be missing from a sum; if not given, as a profile is sized for.")
    ] = None,
    colluding: Annotated[
        int | None, typer.Option(help="How many parties may help the adversary; if not given, as a profile is sized for.")
    ] = None,
    json: Json = False,
) -> None:
    """Computes privacy budgets: what is spent, what a budget allows, and what it means.

    Every figure is an upper bound, by privacy loss distributions (PLD), Renyi divergences (RDP) or pure sums. The Gaussian
    approximation (GDP) is not offered, because it understates what is spent, at times to a fifth.

    With --html it writes a page on which people move sliders for all of this. The page needs no network.
    """
    if context.invoked_subcommand is not None:
        _check_nothing_before(context)
    elif html is None:
        _check_nothing_before(context)
        typer.echo(context.get_help())
    else:
        people = people_of(unit, documents, documents_per_person, persons, None, None)
        _write_sliders(
            html,
            json,
            people=people,
            delta=delta,
            noise=noise,
            epsilon=epsilon,
            rounds=rounds,
            parties=parties,
            missing=missing,
            colluding=colluding,
        )


def _check_nothing_before(context: typer.Context) -> None:
    """Refuses options that only the page with sliders reads: before a command they would be lost."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            from securetm.accounting.calculator.option_checks import refused

            option = f"--{name.replace('_', '-')}"
            instead = f"put {option} behind the command; alone, `securetm budget --html FILE` writes the page with sliders"
            raise refused(option, str(context.params[name]), "is an option of the page with sliders here", instead)


def _write_sliders(path: Path, json: bool, **settings: Any) -> None:
    from securetm.accounting.calculator.option_checks import check
    from securetm.reports.budget_sliders import SliderStart, sized_for, write_sliders
    from securetm.reports.terminal import screen

    check("--parties", settings["parties"])
    usual = dict(zip(("missing", "colluding"), sized_for(settings["parties"]) or (0, 0), strict=True))
    start: dict[str, Any] = {name: usual[name] if value is None else value for name, value in settings.items()}
    write_sliders(SliderStart(**start), path)
    screen().print(f"Written to {path}", markup=False)
    if json:
        print_json({"page": str(path)})


def dp_sgd(
    batch: Batch,
    epochs: Epochs,
    delta: Delta,
    documents: Documents = None,
    noise: Noise = None,
    epsilon: Epsilon = None,
    sampling: Sampling = "poisson",
    tokens: Tokens = None,
    unit: Unit = "",
    documents_per_person: EachPerson = None,
    persons: Persons = None,
    corpus: Counted = None,
    person: PersonColumn = None,
    parties: Among = None,
    missing: Missing = None,
    threshold: Threshold = None,
    colluding: Colluding = 0,
    html: Html = None,
    json: Json = False,
) -> None:
    """Says what a training by clipped, noised gradients spends per document or per person."""
    from securetm.accounting.calculator.noise_wanted import trained

    people = people_of(unit, documents, documents_per_person, persons, corpus, person)
    group = group_of(parties, threshold, missing, colluding)
    settings = (documents_of(people), batch, epochs, delta, sampling, tokens)
    answer(partial(trained, *settings, people, noise, epsilon, group), html, json)


def solve(
    for_: Annotated[str, typer.Option("--for", help="What is sought: noise, epochs or batch.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon per document or person that may be spent.")],
    delta: Delta,
    documents: Documents = None,
    batch: Annotated[int | None, typer.Option(help="Documents in a batch, unless sought.")] = None,
    epochs: Annotated[float | None, typer.Option(help="How often the documents are gone through, unless sought.")] = None,
    noise: Annotated[float | None, typer.Option(help="Noise over the clipping bound, unless sought.")] = None,
    sampling: Sampling = "poisson",
    tokens: Tokens = None,
    unit: Unit = "",
    documents_per_person: EachPerson = None,
    persons: Persons = None,
    corpus: Counted = None,
    person: PersonColumn = None,
    parties: Among = None,
    missing: Missing = None,
    threshold: Threshold = None,
    colluding: Colluding = 0,
    html: Html = None,
    json: Json = False,
) -> None:
    """Finds the least noise, the most epochs or the largest batch for an epsilon."""
    from securetm.accounting.calculator.noise_wanted import with_group
    from securetm.accounting.calculator.solve_for import Target

    people = people_of(unit, documents, documents_per_person, persons, corpus, person)
    group = group_of(parties, threshold, missing, colluding)
    target = Target(for_, epsilon, documents_of(people), delta, batch, epochs, noise, sampling, tokens, *people.told)
    answer(partial(with_group, target.report, group), html, json)


def laplace(
    epsilon_per_word: Annotated[float | None, typer.Option(help="Epsilon of one release for one word occurrence.")] = None,
    scale: Annotated[float | None, typer.Option(help="Or the scale of the Laplace noise on a count.")] = None,
    releases: Annotated[int, typer.Option(help="How often noised counts are given away.")] = 1,
    words: Annotated[list[int] | None, typer.Option(help="Length of a document; may be given several times.")] = None,
    delta: Annotated[float, typer.Option(help="Probability that the promise fails; 0: never.")] = 0.0,
    html: Html = None,
    json: Json = False,
) -> None:
    """Says what Laplace noise on every word occurrence spends, and what that is for a document."""
    from securetm.accounting.calculator.word_noise import WordNoise

    noise = WordNoise.of(epsilon_per_word, scale, releases, tuple(words or WordNoise.words), delta)
    answer(noise.report, html, json)


def distributed(
    parties: Parties,
    noise: Annotated[
        float, typer.Option(help="Noise left when as many as allowed drop out and collude, over the row's bound.")
    ],
    rounds: Annotated[int, typer.Option(help="How many sums are opened.")],
    delta: Delta,
    threshold: Threshold = None,
    colluding: Colluding = 0,
    rate: Annotated[float, typer.Option(help="Probability that a document takes part in a round, by secret coins.")] = 1.0,
    dimension: Dimension = 100_000,
    l2: Length = 65_536.0,
    distribution: Annotated[str, typer.Option(help="Of the shares: discrete_gaussian or skellam.")] = "discrete_gaussian",
    documents: Annotated[int | None, typer.Option(help="Documents of all parties, to judge delta by.")] = None,
    missing: Missing = None,
    unit: Unit = "",
    documents_per_person: EachPerson = None,
    persons: Persons = None,
    corpus: Counted = None,
    person: PersonColumn = None,
    html: Html = None,
    json: Json = False,
) -> None:
    """Says what shares of noise under hidden sums spend, and what dropout and collusion cost."""
    from securetm.accounting.calculator.distributed_noise import Shares
    from securetm.accounting.calculator.option_checks import remaining
    from securetm.mechanisms.noise_shares import NoiseShares

    people = people_of(unit, documents, documents_per_person, persons, corpus, person)
    remain = remaining(parties, threshold, missing)
    shares = Shares(
        parties, remain, colluding, noise, l2, dimension, rate, rounds, delta, distribution, people.documents, people
    )
    answer(partial(shares.report, NoiseShares), html, json)


def compare(
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
    unit: Unit = "",
    documents_per_person: EachPerson = None,
    persons: Persons = None,
    corpus: Counted = None,
    person: PersonColumn = None,
    html: Html = None,
    json: Json = False,
) -> None:
    """Sets central, local and distributed noise side by side for one training."""
    from securetm.accounting.calculator.noise_wanted import compared
    from securetm.accounting.calculator.option_checks import remaining
    from securetm.mechanisms.noise_shares import NoiseShares

    people = people_of(unit, documents, documents_per_person, persons, corpus, person)
    group = (parties, remaining(parties, threshold, missing), colluding)
    settings = (documents_of(people), batch, epochs, delta, people, noise, epsilon)
    answer(partial(compared, *settings, group, dimension, l2, NoiseShares), html, json)


def profile(
    name: Annotated[
        str, typer.Argument(help="A profile's name, or a file ending in .toml.", autocompletion=completion.profiles)
    ],
    documents: Annotated[int | None, typer.Option(help="Documents of all parties, about.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Training rounds; if not given, as many as a run would ask.")] = None,
    vocabulary_size: Annotated[
        int | None, typer.Option(help="Words in the vocabulary; if not given, as many as a run would list, or 2,000.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="Topic model; if not given, the one that a run would train.", autocompletion=completion.models)
    ] = "",
    parties: Annotated[int | None, typer.Option(help="How many parties; if not given, 5 or as many as it needs.")] = None,
    vocabulary: Annotated[
        str | None, typer.Option(help="A language: its public list of words, and how many of them can be expected.")
    ] = None,
    document_length: Annotated[float, typer.Option(help="Words of a document, for what can be expected.")] = 100.0,
    epsilon: Annotated[float | None, typer.Option(help="The budget, in place of the profile's; sizes the noise.")] = None,
    delta: Annotated[float | None, typer.Option(help="The delta, in place of the profile's.")] = None,
    noise: Annotated[float | None, typer.Option(help="Noise over the bound on a row, in place of the profile's.")] = None,
    missing: Annotated[int | None, typer.Option(help="How many parties may be missing from a sum.")] = None,
    colluding: Annotated[int | None, typer.Option(help="How many parties may help the adversary.")] = None,
    start: Annotated[str, typer.Option(help="Where the training begins: plain, public or moments, which asks first.")] = "",
    unit: Unit = "",
    documents_per_person: EachPerson = None,
    persons: Persons = None,
    corpus: Counted = None,
    person: PersonColumn = None,
    html: Html = None,
    json: Json = False,
) -> None:
    """Says what a run under a profile spends, and how many rounds its budget lasts."""
    from securetm.cli.budget_profile import ProfileQuestion, words_of_a_run

    people = people_of(unit, documents, documents_per_person, persons, corpus, person)
    listed = words_of_a_run(name, people, parties, epsilon, delta) if vocabulary_size is None else vocabulary_size
    words = (listed, model, vocabulary, document_length)
    asked = ProfileQuestion(name, parties, rounds, *words, people, epsilon, delta, noise, missing, colluding, start=start)
    answer(lambda progress: asked.run().report(progress), html, json)


def ledger(
    file: Annotated[
        Path, typer.Argument(help="A party's ledger, or the folder of a run or of ledgers; all is read and left as it is.")
    ],
    allow: Annotated[
        float | None, typer.Option(help="Change the party's own budget to this epsilon; an entry says so.")
    ] = None,
    html: Html = None,
    json: Json = False,
) -> None:
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
    records = [shown(partial(ledger_report, one, seen=seen_beside(one)), html, json).record() for one in files]
    if json:
        print_json(records[0] if len(records) == 1 else {"ledgers": records})


_DOCUMENTS = "--documents 18748 --batch 256"
_COMMANDS: dict[str, tuple[Callable[..., None], str, str]] = {  # the function, its short help, and an example
    "dp-sgd": (
        dp_sgd,
        "What a training by noised gradients spends.",
        f"{_DOCUMENTS} --epochs 20 --noise 1.2 --delta 1e-6",
    ),
    "solve": (
        solve,
        "The noise, epochs or batch for an epsilon.",
        f"--for noise --epsilon 3 {_DOCUMENTS} --epochs 20 --delta 1e-6",
    ),
    "laplace": (laplace, "Noise on word occurrences, and what it is worth.", "--epsilon-per-word 8 --words 60"),
    "distributed": (
        distributed,
        "Shares of noise; the price of dropout and collusion.",
        "--parties 5 --threshold 4 --noise 1 --rate 0.01 --rounds 500 --delta 1e-6",
    ),
    "compare": (
        compare,
        "Central, local and distributed noise side by side.",
        f"{_DOCUMENTS} --epochs 5 --noise 1.2 --delta 1e-6 --threshold 4",
    ),
    "profile": (
        profile,
        "What a run under a profile spends.",
        "dp-distributed --documents 100000 --persons 20000 --epsilon 4 --delta 1e-6",
    ),
    "forecast": (forecast, "Whether a model will be of use, before anything is spent.", "--documents 20000 --epsilon 3"),
    "plan": (
        plan,
        "What each run may spend over years.",
        "--years 5 --epsilon 8 --delta 1e-6 --documents 20000 --words public",
    ),
    "ledger": (ledger, "What a party's ledger holds.", "north.ledger"),
}
