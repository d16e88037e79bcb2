"""`securetm budget`: what a training spends of privacy, what a budget allows, what a ledger holds. It reads no document.

What it computes is on the floors below; nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from securetm.cli.json_output import Json, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from securetm.accounting.calculator.budget_report import BudgetReport
    from securetm.accounting.calculator.composed_report import Progress
    from securetm.accounting.calculator.distributed_noise import Shares
    from securetm.accounting.spends import Spend

Html = Annotated[Path | None, typer.Option(help="Write all of it to this file too, as one page that loads nothing.")]
Documents = Annotated[int, typer.Option(help="Documents of all parties together.")]
Batch = Annotated[
    int, typer.Option(help="Documents in a batch of all parties together; their mean number, if Poisson-sampled.")
]
Epochs = Annotated[float, typer.Option(help="How often the documents are gone through.")]
Noise = Annotated[float, typer.Option(help="Standard deviation of the noise over the clipping bound.")]
Delta = Annotated[float, typer.Option(help="Probability that the promise fails; well below 1 / documents.")]
Sampling = Annotated[str, typer.Option(help="How batches are drawn: poisson or shuffled.")]
Tokens = Annotated[int | None, typer.Option(help="Tokens of the longest document; its promise covers them all.")]
Parties = Annotated[int, typer.Option(help="How many parties take part.")]
Threshold = Annotated[int | None, typer.Option(help="How many must remain in a sum; all of them, if not given.")]
Colluding = Annotated[int, typer.Option(help="How many parties may help the adversary.")]
Dimension = Annotated[int, typer.Option(help="Coordinates of a vector.")]
Length = Annotated[float, typer.Option("--l2", help="Bound on one document's row, in steps of the integer grid.")]
_PATIENCE = 1.5  # seconds before a bar is shown


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    budget = typer.Typer(rich_markup_mode=None, add_completion=False)
    budget.callback(invoke_without_command=True, epilog=f"Example: {_EXAMPLES['dp-sgd']}")(_alone)
    for name, (command, said) in _COMMANDS.items():
        budget.command(name, short_help=said, epilog=f"Example: {_EXAMPLES[name]}")(command)
    app.add_typer(budget, name="budget", short_help="Compute what privacy costs.")


def _alone(context: typer.Context) -> None:
    """Computes privacy budgets: what is spent, what a budget allows, and what it means.

    Every figure is an upper bound, by privacy loss distributions (PLD), Renyi divergences (RDP) or pure sums. The Gaussian
    approximation (GDP) is not offered, because it understates what is spent, at times to a fifth.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def dp_sgd(
    documents: Documents,
    batch: Batch,
    epochs: Epochs,
    noise: Noise,
    delta: Delta,
    sampling: Sampling = "poisson",
    tokens: Tokens = None,
    html: Html = None,
    json: Json = False,
) -> None:
    """Says what a training by clipped, noised gradients spends per document."""
    from securetm.accounting.calculator import dp_sgd as calculator

    training = calculator.Training(documents, batch, epochs, noise, delta, sampling, tokens)
    _tell(lambda progress: calculator.dp_sgd(training, progress), html, json)


def solve(
    for_: Annotated[str, typer.Option("--for", help="What is sought: noise, epochs or batch.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon per document that may be spent.")],
    documents: Documents,
    delta: Delta,
    batch: Annotated[int | None, typer.Option(help="Documents in a batch, unless sought.")] = None,
    epochs: Annotated[float | None, typer.Option(help="How often the documents are gone through, unless sought.")] = None,
    noise: Annotated[float | None, typer.Option(help="Noise over the clipping bound, unless sought.")] = None,
    sampling: Sampling = "poisson",
    tokens: Tokens = None,
    html: Html = None,
    json: Json = False,
) -> None:
    """Finds the least noise, the most epochs or the largest batch for an epsilon."""
    from securetm.accounting.calculator import solve_for as calculator

    target = calculator.Target(for_, epsilon, documents, delta, batch, epochs, noise, sampling, tokens)
    _tell(lambda progress: calculator.solve(target, progress), html, json)


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
    from securetm.accounting.calculator import word_noise as calculator

    noise = calculator.WordNoise.of(epsilon_per_word, scale, releases, tuple(words or (8, 60, 213)), delta)
    _tell(lambda progress: calculator.laplace(noise, progress), html, json)


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
    html: Html = None,
    json: Json = False,
) -> None:
    """Says what shares of noise under hidden sums spend, and what dropout and collusion cost."""
    from securetm.accounting.calculator import distributed_noise as calculator

    remain = parties if threshold is None else threshold
    shares = calculator.Shares(parties, remain, colluding, noise, l2, dimension, rate, rounds, delta, distribution, documents)
    _tell(lambda progress: calculator.distributed(shares, _of_shares, progress), html, json)


def compare(
    documents: Documents,
    batch: Batch,
    epochs: Epochs,
    noise: Noise,
    delta: Delta,
    parties: Parties = 5,
    threshold: Threshold = None,
    colluding: Colluding = 0,
    dimension: Dimension = 100_000,
    l2: Length = 65_536.0,
    html: Html = None,
    json: Json = False,
) -> None:
    """Sets central, local and distributed noise side by side for one training."""
    from securetm.accounting.calculator import distributed_noise as calculator
    from securetm.accounting.calculator import dp_sgd as gradients

    remain = parties if threshold is None else threshold
    training = gradients.Training(documents, batch, epochs, noise, delta)
    comparing = calculator.Comparison(training, parties, remain, colluding, dimension, l2)
    _tell(lambda progress: calculator.compare(comparing, _of_shares, progress), html, json)


def profile(
    name: Annotated[str, typer.Argument(help="A profile's name, or a file ending in .toml.")],
    documents: Annotated[int | None, typer.Option(help="Documents of all parties, to judge delta by.")] = None,
    rounds: Annotated[int, typer.Option(help="Training rounds.")] = 100,
    vocabulary_size: Annotated[int, typer.Option(help="Words in the vocabulary.")] = 2000,
    model: Annotated[str, typer.Option(help="Topic model: one that asks for batches is helped by coins.")] = "lda",
    parties: Annotated[int | None, typer.Option(help="How many parties; if not given, 5 or as many as it needs.")] = None,
    html: Html = None,
    json: Json = False,
) -> None:
    """Says what a run under a profile spends, and how many rounds its budget lasts."""
    from securetm.accounting.calculator import profile_run as calculator
    from securetm.cli.budget_profile import billed

    bill = billed(name, parties, rounds, vocabulary_size, documents, model)
    _tell(lambda progress: calculator.from_bill(bill, progress), html, json)


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
    from securetm.accounting.calculator import ledger_report as calculator
    from securetm.errors import BadSetting
    from securetm.federation.remembered_heads import ledgers_at

    files = ledgers_at(file)
    if len(files) > 1 and (allow is not None or html is not None):
        raise BadSetting(
            "securetm budget ledger", "FILE", str(file), f"holds {len(files)} ledgers, and --allow or --html is for one"
        )
    if allow is not None:
        calculator.allow(files[0], allow)
    sheets = [_shown(_compared(one), html, json) for one in files]
    if json:
        print_json(sheets[0].record() if len(sheets) == 1 else {"ledgers": [sheet.record() for sheet in sheets]})


def _compared(path: Path) -> Callable[[Progress], BudgetReport]:
    """One ledger's sheet, beside what other files remember of it."""
    from securetm.accounting.calculator.ledger_report import from_ledger
    from securetm.federation.remembered_heads import seen_beside

    return lambda progress: from_ledger(path, progress, seen_beside(path))


def _of_shares(shares: Shares, honest: int) -> Spend:
    """One sum with so many honest shares in it, as the mechanism itself accounts for it."""
    from securetm.accounting.spends import Spend
    from securetm.contracts import Block, Cohort, Domain, Terms
    from securetm.mechanisms.noise_shares import NoiseShares

    rounded = 2.0 * shares.dimension
    terms = Terms(
        (Block("row", (shares.dimension,)),),
        domain=Domain.INTEGER,
        bits=64,
        grid=1.0,
        sampling=shares.rate,
        l2=shares.sensitivity,
        l1=shares.l2 * shares.dimension**0.5 + rounded,
        linf=shares.l2 + 2,
    )
    cohort = Cohort(b"", 0, tuple(map(str, range(shares.parties))), threshold=honest)
    noise = NoiseShares(shares.left(honest), shares.distribution)
    noised = noise.admit(terms, cohort)
    return Spend(noise.event(noised, cohort), noise.failure_probability(noised, cohort))


def _tell(compute: Callable[[Progress], BudgetReport], html: Path | None, json: bool) -> None:
    sheet = _shown(compute, html, json)
    if json:
        print_json(sheet.record())


def _shown(compute: Callable[[Progress], BudgetReport], html: Path | None, json: bool) -> BudgetReport:
    from securetm.reports.budget_page import write_page
    from securetm.reports.budget_tables import show_sheet
    from securetm.reports.terminal import results, screen

    to = screen()
    with _Patient(to) as progress:
        sheet = compute(progress)
    show_sheet(sheet, results(json))
    if html is not None:
        write_page(sheet, html)
        to.print(f"Written to {html}", markup=False)
    return sheet


class _Patient:
    """Bars that appear only once a computation takes long; most are over before."""

    def __init__(self, to: Console) -> None:
        from securetm.reports.progress import Bars

        self._bars, self._begun, self._shown, self._now = Bars(to), time.monotonic(), False, ("", 1)

    def __enter__(self) -> _Patient:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._shown:
            self._bars.__exit__(None, None, None)

    def stage(self, title: str, total: int) -> None:
        """A stage of so many steps begins."""
        self._now = (title, total)
        if self._shown:
            self._bars.stage(title, total)

    def step(self, done: int) -> None:
        """So many of its steps are done."""
        if not self._shown and time.monotonic() - self._begun > _PATIENCE:
            self._shown = True
            self._bars.__enter__()
            self._bars.stage(*self._now)
        if self._shown:
            self._bars.step(done)


_COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "dp-sgd": (dp_sgd, "What a training by noised gradients spends."),
    "solve": (solve, "The noise, epochs or batch for an epsilon."),
    "laplace": (laplace, "Noise on word occurrences, and what it is worth."),
    "distributed": (distributed, "Shares of noise; the price of dropout and collusion."),
    "compare": (compare, "Central, local and distributed noise side by side."),
    "profile": (profile, "What a run under a profile spends."),
    "ledger": (ledger, "What a party's ledger holds."),
}
_EXAMPLES = {
    "dp-sgd": "securetm budget dp-sgd --documents 18748 --batch 256 --epochs 20 --noise 1.2 --delta 1e-6",
    "solve": "securetm budget solve --for noise --epsilon 3 --documents 18748 --batch 256 --epochs 20 --delta 1e-6",
    "laplace": "securetm budget laplace --epsilon-per-word 8 --words 60",
    "distributed": "securetm budget distributed --parties 5 --threshold 4 --noise 1 --rate 0.01 --rounds 500 --delta 1e-6",
    "compare": "securetm budget compare --documents 18748 --batch 256 --epochs 5 --noise 1.2 --delta 1e-6 --threshold 4",
    "profile": "securetm budget profile dp-distributed --rounds 200 --documents 50000",
    "ledger": "securetm budget ledger north.ledger",
}
