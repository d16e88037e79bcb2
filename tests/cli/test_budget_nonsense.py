"""`securetm budget`: a letter for every nonsense argument, and sense for the least that can be asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .calculated import budget

SGD = {"--documents": "1000", "--batch": "10", "--epochs": "1", "--noise": "1", "--delta": "1e-5"}


def sgd(**changed: str) -> str:
    settings = SGD | {f"--{name}": value for name, value in changed.items()}
    return "dp-sgd " + " ".join(f"{name}={value}" for name, value in settings.items())


SHARES = "distributed --noise 1 --rounds 5 --delta 1e-6"
SOLVE = "solve --documents 1000 --delta 1e-5"
NONSENSE = {
    sgd(noise="-1"): "--noise = -1 is negative",
    sgd(noise="0"): "--noise = 0 is zero",
    sgd(noise="nan"): "--noise = NaN is not a number",
    sgd(noise="inf"): "--noise = inf is not finite",
    sgd(noise="much"): "Invalid value for '--noise'",
    sgd(noise="1e-9"): "--noise = 1e-09 is below",
    sgd(noise="1e9"): "--noise = 1e+09 is beyond",
    sgd(batch="1001"): "--batch = 1,001 is more than the 1,000 documents",
    sgd(batch="0"): "--batch = 0 is no number of documents",
    sgd(batch="-5"): "--batch = -5 is no number of documents",
    sgd(batch="1.5"): "Invalid value for '--batch'",
    sgd(documents="0"): "--documents = 0 is no number of documents",
    sgd(documents="99999999999999"): "is beyond",
    sgd(epochs="0"): "--epochs = 0 is zero",
    sgd(epochs="-2"): "--epochs = -2 is negative",
    sgd(epochs="nan"): "--epochs = NaN is not a number",
    sgd(epochs="1e9"): "more than 100,000,000",
    sgd(delta="1"): "--delta = 1 is not below 1",
    sgd(delta="2"): "--delta = 2 is not below 1",
    sgd(delta="0"): "--delta = 0 has no finite epsilon",
    sgd(delta="-1e-5"): "--delta = -1e-05 is negative",
    sgd(delta="nan"): "--delta = NaN is not a number",
    sgd(delta="1e-310"): "is too small to compute with",
    sgd(sampling="fair"): "--sampling = fair is not known",
    sgd(tokens="0"): "--tokens = 0 is no number of tokens",
    "dp-sgd": "Missing option",
    f"{SOLVE} --for joy --epsilon 1": "--for = joy is not known",
    f"{SOLVE} --for noise --epsilon 1 --batch 10": "--epochs = (nothing) is needed",
    f"{SOLVE} --for noise --epsilon 1 --batch 10 --epochs 1 --noise 1": "is what is sought",
    f"{SOLVE} --for noise --epsilon nan --batch 10 --epochs 1": "--epsilon = NaN is not a number",
    f"{SOLVE} --for noise --epsilon -1 --batch 10 --epochs 1": "--epsilon = -1 is negative",
    f"{SOLVE} --for noise --epsilon 1e-9 --batch 1000 --epochs 1000": "no noise stays within",
    f"{SOLVE} --for epochs --epsilon 1e-3 --batch 1000 --noise 1": "no epochs stays within",
    f"{SOLVE} --for batch --epsilon 1 --epochs 1 --noise 1 --sampling shuffled": "cannot be solved for shuffled",
    "laplace": "--epsilon-per-word and --scale = neither was given",
    "laplace --scale 1 --epsilon-per-word 1": "--epsilon-per-word and --scale = both was given",
    "laplace --scale 0": "--scale = 0 is zero",
    "laplace --scale nan": "--scale = NaN is not a number",
    "laplace --epsilon-per-word inf": "--epsilon-per-word = inf is not finite",
    "laplace --scale 1 --releases 0": "--releases = 0 is no number of releases",
    "laplace --scale 1 --words 0": "--words = 0 is no number of words",
    "laplace --scale 1 --delta 1": "--delta = 1 is not below 1",
    f"{SHARES} --parties 5 --threshold 6": "--threshold = 6 is more than the 5 parties",
    f"{SHARES} --parties 5 --colluding 5": "leaves no honest party",
    f"{SHARES} --parties 5 --colluding -1": "--colluding = -1 is negative",
    f"{SHARES} --parties 0": "--parties = 0 is no number of parties",
    f"{SHARES} --parties 5 --rate 1.5": "--rate = 1.5 is above 1",
    f"{SHARES} --parties 5 --rate nan": "--rate = NaN is not a number",
    f"{SHARES} --parties 5 --l2 -1": "--l2 = -1 is negative",
    f"{SHARES} --parties 5 --l2 1e300": "--l2 = 1e+300 is beyond 2^52 steps",
    "laplace --scale 1e300": "drowns every count in noise",
    "laplace --scale 1e-310": "is not finite",
    f"{SHARES} --parties 5 --dimension 0": "--dimension = 0 is no number of coordinates",
    f"{SHARES} --parties 5 --distribution cauchy": "--distribution = cauchy is not known",
    "profile nowhere": "there is no profile called 'nowhere'",
    "profile dp-local --rounds 0": "--rounds = 0 is no number of rounds",
    "profile dp-local --vocabulary-size 0": "--vocabulary-size = 0 is no number of words",
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


def test_a_page_that_cannot_be_written_is_a_misuse(tmp_path: Path) -> None:
    said = budget(f"laplace --scale 1 --html {tmp_path / 'nowhere' / 'page.html'}")
    assert said.code == 2
    assert "cannot be written" in said.err


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
