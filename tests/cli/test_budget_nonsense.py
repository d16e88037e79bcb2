"""`securetm budget`: a letter for every nonsense argument, and sense for the least that can be asked."""

from __future__ import annotations

import re

import pytest

from .calculated import budget

SGD = {"--documents": "1000", "--batch": "10", "--epochs": "1", "--noise": "1", "--delta": "1e-5"}


def sgd(**changed: str) -> str:
    settings = SGD | {f"--{name}": value for name, value in changed.items()}
    return "dp-sgd " + " ".join(f"{name}={value}" for name, value in settings.items())


SHARES = "distributed --noise 1 --rounds 5 --delta 1e-6"
SOLVE = "solve --documents 1000 --delta 1e-5"
NONSENSE = {
    sgd(noise="0"): "--noise is 0; it must be at least 0.01",
    sgd(noise="nan"): "--noise is nan; it must be",
    sgd(noise="1e9"): "--noise is 1e+09; it must be at least 0.01 and at most 1,000,000",
    sgd(batch="1001"): "--batch is 1,001; it must be at most 1,000, the number of documents",
    sgd(batch="1.5"): "Invalid value for '--batch'",
    sgd(documents="99999999999999"): "must be at least 1 and at most 1,000,000,000,000 documents",
    sgd(epochs="0"): "--epochs is 0; it must be above 0",
    sgd(epochs="1e9"): "more than 100,000,000",
    sgd(delta="1"): "--delta is 1; it must be at least 1e-300 and below 1",
    sgd(delta="0"): "--delta is 0; it must be above 0, because",
    sgd(sampling="fair"): "--sampling is fair; it must be one of",
    "dp-sgd": "Missing option",
    f"{SOLVE} --for joy --epsilon 1": "--for is joy; it must be one of",
    f"{SOLVE} --for noise --epsilon 1 --batch 10": "the option --epochs is missing",
    f"{SOLVE} --for noise --epsilon 1 --batch 10 --epochs 1 --noise 1": "--noise is 1; it must be left out, because",
    f"{SOLVE} --for noise --epsilon -1 --batch 10 --epochs 1": "--epsilon is -1; it must be above 0",
    f"{SOLVE} --for noise --epsilon 1e-9 --batch 1000 --epochs 1000": "no noise stays within",
    f"{SOLVE} --for epochs --epsilon 1e-3 --batch 1000 --noise 1": "no epochs stays within",
    f"{SOLVE} --for batch --epsilon 1 --epochs 1 --noise 1 --sampling shuffled": "cannot be solved for shuffled",
    "laplace": "--epsilon-per-word is missing; give it or --scale",
    "laplace --scale 1 --epsilon-per-word 1": "--scale is 1; it cannot be given beside --epsilon-per-word",
    "laplace --scale 0": "--scale is 0; it must be at least 1e-06",
    "laplace --scale 1 --releases 0": "--releases is 0; it must be at least 1",
    f"{SHARES} --parties 5 --threshold 6": "--threshold is 6; it must be at most 5, the number of parties",
    f"{SHARES} --parties 5 --colluding 5": "leaves no honest party",
    f"{SHARES} --parties 5 --colluding -1": "--colluding is -1; it must not be negative",
    f"{SHARES} --parties 5 --rate 1.5": "--rate is 1.5; it must be above 0 and at most 1",
    f"{SHARES} --parties 5 --l2 -1": "--l2 is -1; it must be above 0",
    f"{SHARES} --parties 5 --dimension 0": "--dimension is 0; it must be at least 1",
    f"{SHARES} --parties 5 --distribution cauchy": "--distribution is cauchy; it must be one of",
    "profile nowhere.toml": "the profile's file nowhere.toml does not exist",
    "profile dp-local --rounds 0": "--rounds is 0; it must be at least 1",
}


@pytest.mark.parametrize("arguments", NONSENSE)
def test_nonsense_gets_a_sentence_and_a_hint(arguments: str) -> None:
    said = budget(arguments)
    error, hint = said.err.strip().splitlines()
    assert said.code == 2
    assert said.out == ""
    assert error.startswith("securetm: error: ")
    assert NONSENSE[arguments] in error
    assert len(hint) > len("securetm: hint: ")


@pytest.mark.parametrize(
    "asked",
    [
        "dp-sgd --documents 1 --batch 1 --epochs 1 --noise 1 --delta 1e-5",
        "distributed --parties 4 --threshold 3 --colluding 2 --noise 1 --rounds 1 --delta 1e-6",
        "laplace --epsilon-per-word 8 --words 1 --releases 1",
    ],
)
def test_one_thing_is_not_told_as_several(asked: str) -> None:
    said = budget(asked).out
    assert re.search(r"\b1 (document|round|word)\b", said)
    assert not re.search(r"(?<![\d.,])1 (honest )?(documents|rounds|epochs|words|parties|shares)\b", said)
