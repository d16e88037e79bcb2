"""Whether what the budget calculator is asked makes sense: a sentence and an advice for each number that does not. No budgets.

Every check names the option that people typed, and says what to type instead.
"""

from __future__ import annotations

import math

from securetm.accounting.accounting_errors import NonsenseArgument

MOST_DOCUMENTS = 10**12
MOST_STEPS = 10**8
MOST_GRID_STEPS = 2.0**52
LEAST_NOISE, MOST_NOISE = 0.01, 1e6


def check_finite(option: str, value: float, instead: str) -> None:
    """NaN and infinity are no settings."""
    if math.isnan(value):
        raise NonsenseArgument(option, "NaN", "is not a number", instead)
    if math.isinf(value):
        raise NonsenseArgument(option, f"{value:g}", "is not finite", instead)


def check_above_zero(option: str, value: float, instead: str) -> None:
    """A finite number above zero."""
    check_finite(option, value, instead)
    if value <= 0:
        raise NonsenseArgument(option, f"{value:g}", "is negative" if value < 0 else "is zero", instead)


def check_count(option: str, value: int, most: int, what: str) -> None:
    """A whole number of things, at least one."""
    if value < 1:
        raise NonsenseArgument(option, f"{value:,}", f"is no number of {what}", f"give at least 1 with {option}")
    if value > most:
        raise NonsenseArgument(option, f"{value:,}", f"is beyond {most:,} {what}", f"give at most {most:,} with {option}")


def check_noise(noise: float) -> None:
    """A noise multiplier that says something: the standard deviation over the clipping bound."""
    advice = (
        "--noise is the standard deviation of the noise over the clipping bound, 1 for example; more noise costs less budget"
    )
    check_above_zero("--noise", noise, advice)
    if not LEAST_NOISE <= noise <= MOST_NOISE:
        side = (
            f"is below {LEAST_NOISE:g}: it hides nothing"
            if noise < LEAST_NOISE
            else f"is beyond {MOST_NOISE:,.0f}: nothing is left"
        )
        raise NonsenseArgument("--noise", f"{noise:g}", side, advice)


def check_delta(delta: float, pure: bool = False) -> None:
    """A probability below one; zero only where noise allows a pure epsilon."""
    advice = "delta is the probability that the promise fails: choose it well below 1 / documents, 1e-6 for example"
    check_finite("--delta", delta, advice)
    if delta < 0:
        raise NonsenseArgument("--delta", f"{delta:g}", "is negative", advice)
    if delta >= 1:
        raise NonsenseArgument("--delta", f"{delta:g}", "is not below 1: everything would be allowed", advice)
    if delta == 0 and not pure:
        raise NonsenseArgument("--delta", "0", "has no finite epsilon: noise of this shape has no pure one", advice)
    if 0 < delta < 1e-300:
        raise NonsenseArgument("--delta", f"{delta:g}", "is too small to compute with", advice)


def check_batch(batch: int, documents: int) -> None:
    """A batch is drawn from the documents there are."""
    check_count("--documents", documents, MOST_DOCUMENTS, "documents")
    check_count("--batch", batch, MOST_DOCUMENTS, "documents")
    if batch > documents:
        raise NonsenseArgument(
            "--batch",
            f"{batch:,}",
            f"is more than the {documents:,} documents",
            f"give at most {documents:,}: then every document is in every step",
        )


def check_epochs(epochs: float, steps: float) -> None:
    """A positive number of passes, and no more steps than can be composed."""
    check_above_zero("--epochs", epochs, "give how often the documents are gone through, 10 for example")
    if steps > MOST_STEPS:
        raise NonsenseArgument(
            "--epochs",
            f"{epochs:g}",
            f"makes {steps:,.0f} steps, more than {MOST_STEPS:,}",
            "give fewer epochs or larger batches",
        )


def check_steps(length: float) -> None:
    """A length on a grid of whole numbers that a computer can tell apart."""
    advice = "--l2 is the bound on one document's row in steps of the integer grid, 65536 for example"
    check_above_zero("--l2", length, advice)
    if length > MOST_GRID_STEPS:
        raise NonsenseArgument("--l2", f"{length:g}", "is beyond 2^52 steps of the grid", advice)


def check_choice(option: str, value: str, known: tuple[str, ...]) -> None:
    """One of the known words."""
    if value not in known:
        raise NonsenseArgument(option, value, "is not known", f"known: {', '.join(known)}")


def check_rate(rate: float) -> None:
    """The probability with which a document takes part in a round."""
    advice = "--rate is the probability that a document takes part in a round, 0.01 for example; 1: all of them"
    check_above_zero("--rate", rate, advice)
    if rate > 1:
        raise NonsenseArgument("--rate", f"{rate:g}", "is above 1", advice)


def check_parties(parties: int, threshold: int, colluding: int) -> None:
    """Some honest party must remain to add noise."""
    check_count("--parties", parties, 100_000, "parties")
    check_count("--threshold", threshold, 100_000, "parties")
    if threshold > parties:
        raise NonsenseArgument(
            "--threshold", str(threshold), f"is more than the {parties} parties", "give how many must remain in a sum"
        )
    if colluding < 0:
        raise NonsenseArgument(
            "--colluding", str(colluding), "is negative", "give how many parties may help the adversary, 0 for none"
        )
    if colluding >= threshold:
        raise NonsenseArgument(
            "--colluding",
            str(colluding),
            f"leaves no honest party among the {threshold} that must remain",
            "raise --threshold above --colluding",
        )
