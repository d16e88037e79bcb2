"""The words of the page to sign for what attacks measure and profiles promise: no term that only the field knows.

It judges nothing. A measure or a promise that is not listed keeps its own words.
"""

from __future__ import annotations

from collections.abc import Mapping

from securetm.leakage.verdicts import BROKEN, HELD, NOT_TESTED, OPEN

_IN_IT = "of those who were in it, recognised while one in {} others is wrongly said to be"
MEASURES: Mapping[str, str] = {
    "documents recovered exactly": "documents rebuilt with every counted word right",
    "guessed documents that are real": "rebuilt documents that really exist",
    "documents recovered from one party's own answer": "documents rebuilt from what one party sent",
    "documents whose own words are put together": "documents whose words were found to belong together",
    "documents whose party is named rightly": "documents whose owner was named rightly",
    "documents given away by a word that no other has": "documents given away by a word that no other document has",
    "documents of a round that are named in the pool": "documents picked out of a list as having taken part",
    "named documents that took part": "documents said to have taken part that really did",
    "named words that occur": "words said to be in the documents that really are",
    "words that are named": "words of the documents that were found out",
    "links between words that are found": "pairs of words of one document that were found to belong together",
    "pairs of words rightly linked": "pairs of words rightly said to be of one document",
    "rare words whose likeliest companion is of the same document": "rare words tied to another word of their document",
    "rare words whose likeliest companion is of the same sentence": "rare words tied to another word of their sentence",
    "words of one document alone whose nearest row is of the same document": "words of a single document that were tied to it",
    "counts of a word that one party alone used in a round, told exactly": "word counts of one party read exactly from a total",
    "counts of a word that one party alone used in a round, told exactly and with the party": (
        "word counts of one party read exactly from a total, with the party's name"
    ),
    "counts behind the shares that are exact": "word counts of one party that were worked out exactly",
    "occurrences of words that are counted at all": "occurrences of words at one party that were counted",
    "words whose number of documents at the party is told exactly": "words of which it was told how many documents have them",
    "words of one party alone that are told, with the party": "words that one party alone has, named with the party",
    "subjects whose main party is named rightly": "subjects of which it was told which party has most",
    "members told at 0.1 % false alarms (likelihood ratio)": _IN_IT.format("1,000"),
    "members told at 0.1 % false alarms (loss)": _IN_IT.format("1,000"),
    "members told at 0.1 % false alarms (word counts)": _IN_IT.format("1,000"),
    "members told at 1 % false alarms (likelihood ratio)": _IN_IT.format("100"),
    "members told at 1 % false alarms (loss)": _IN_IT.format("100"),
    "members told at 1 % false alarms (word counts)": _IN_IT.format("100"),
    "epsilon shown in one run": "loss of privacy (epsilon) that planted test documents proved",
    "share of one sum's epsilon that is shown, nothing assumed": (
        "loss of privacy that was proved, as a multiple of what one total may lose"
    ),
    "share of one sum's epsilon that is shown, if the noise is Gaussian": (
        "loss of privacy that was proved, as a multiple of what one total may lose"
    ),
    "distance of neighbouring sums, in sensitivities that the terms state": (
        "influence of one document on a total, as a multiple of what the noise is made for"
    ),
    "promised noise that is missing": "part of the protecting noise that those who work together can take away",
    "deviation of the noise that remains, as a share of the promised one": "protecting noise that remains, as a share",
}

CLAIMS: Mapping[str, str] = {
    "sees only sums": "is shown totals over several parties, and no single answer; what a total says can be worked out",
    "the total is differentially private": "cannot tell, beyond the stated budget, whether any one {unit} was in it",
    "cannot speak for a party": "cannot send anything in a party's name",
    "cannot show parties different cohorts": "cannot tell two parties different things about who takes part",
    "the named words are differentially private": "cannot tell, beyond the stated budget, which one document a word is from",
}
ENDED: Mapping[str, str] = {  # what stands on the page where an attempt is spoken of; the word behind it is that of audits
    BROKEN: "it succeeded, against what is promised (broken)",
    OPEN: "it succeeded, and nobody promised otherwise (open)",
    HELD: "what was tried failed (held)",
}
COUNTED: Mapping[str, str] = {  # of questions, in the headline
    BROKEN: "broken (an attack did what is promised to be prevented)",
    OPEN: "open (something got out that nobody promised to keep in)",
    HELD: "held (what was tried failed; that is no proof)",
    NOT_TESTED: "not tested (nothing was learned)",
}
_LIES: Mapping[str, str] = {  # of a coordinator to a party
    "list of survivors": "list of who still takes part",
}
_REASONS: Mapping[str, str] = {  # how a reason begins, and what it means
    "the attack did not break the baseline": "the attack failed where nothing is protected, too, so its failure shows nothing",
    "there was nothing to try it on": "there was nothing in this run to try it on",
    "too little was tried": "too little was tried: even an attacker who is never wrong would have shown nothing",
    "random numbers reach as much": "guessing does as well, so the figure shows nothing",
    "its interval does not lie above": "guessing may have done as well",
}
_MOST_UNIT = "document"


def plain_measure(measure: str) -> str:
    """What an attack measured, in plain words."""
    return MEASURES.get(measure, measure)


def plain_claim(what: str, unit: str = "") -> str:
    """What a profile promises, in plain words."""
    return CLAIMS.get(what, what).replace("{unit}", {"word": "word occurrence"}.get(unit, unit) or _MOST_UNIT)


def plain_reason(why: str) -> str:
    """Why nothing was learned, in plain words."""
    return next((said for begins, said in _REASONS.items() if why.startswith(begins)), why)


def plain_lie(attempt: str) -> str:
    """A lie that a party was told, in plain words."""
    for term, said in _LIES.items():
        attempt = attempt.replace(term, said)
    return attempt
