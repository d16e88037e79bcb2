"""No page and no sentence of the program claims more than was shown: a failed attack is no proof, and a limit is no law."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "protocols", "threat_models", "audits", "securetm", "lab")
CLAIMS = {  # what is said too much, and what was found instead
    r"promises? that it cannot be done": "name the promise, its adversary and its helpers",
    r"not by anything that was tried": "say what failed, how hard it tried, and what an ideal attacker would have reached",
    r"nothing that was tried succeeded": "the same",
    r"pass(es)? the rule": "say whose rule it is, and that to stay below it is no safety",
    r"protects? against all that was asked": "a profile promises",
    r"was kept from": "say what is promised against whom",
    r"(is|are) (perfectly|completely|absolutely|fully|provably) (safe|secure|private|protected|anonymous)": "nothing is",
    r"(cannot|can never) be (broken|attacked|reconstructed|de-?anonymi[sz]ed)": "say what was tried",
    r"no (attack|attacker|adversary) (can|could) (ever|succeed|learn|read|find)": "say what was tried",
    r"guarantees? (the )?(anonymity|safety)": "nothing does",
    r"held[^.]{0,40} (means|proves|shows) (that )?(it is )?safe": "held does not mean safe",
}
_DENIED = re.compile(r"\b(no|not|never|nothing|none|nobody)\b[^.]{0,60}$", re.IGNORECASE)


@cache
def texts() -> Mapping[str, str]:
    """Every page, and every file of code with its sentences, as one line each."""
    return dict(_texts())


def _texts() -> Iterator[tuple[str, str]]:
    for path in (*ROOT.glob("*.md"), *(one for folder in FOLDERS for one in (ROOT / folder).rglob("*"))):
        if path.suffix in (".md", ".toml", ".py") and path.name != "CHANGELOG.md":
            yield str(path.relative_to(ROOT)), re.sub(r'"\s*\n\s*f?"|\s+', " ", path.read_text("utf-8")).replace('"  "', "")


def found(claim: str, text: str) -> list[str]:
    """Where it is said, unless the sentence denies it."""
    hits = re.finditer(claim, text, re.IGNORECASE)
    return [text[max(one.start() - 60, 0) : one.end() + 40] for one in hits if not _DENIED.search(text[: one.start()][-80:])]


@pytest.mark.parametrize("claim", CLAIMS)
def test_nothing_is_said_that_was_not_shown(claim: str) -> None:
    said = [f"{name}: …{hit}… ({CLAIMS[claim]})" for name, text in texts().items() for hit in found(claim, text)]
    assert said == []


def test_the_test_finds_such_sentences_and_lets_their_denials_pass() -> None:
    assert found(r"was kept from", "says what every adversary was kept from")
    assert found(r"held[^.]{0,40} (means|proves|shows) (that )?(it is )?safe", "An attack that held proves it is safe.")
    assert not found(r"guarantees? (the )?(anonymity|safety)", "This is no statement that guarantees anonymity.")
    assert len(texts()) > 500
