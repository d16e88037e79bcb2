"""Selects the words that a party may name: those that enough documents use, counted with noise. It covers nothing else.

A public list of words needs none of this; words that only parties know are themselves a secret of their documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, erfc, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from securetm.contracts import (
    INF,
    Array,
    Claim,
    Cohort,
    Domain,
    Mechanism,
    NamingThreshold,
    NoiseBy,
    Noised,
    RoundContext,
    Rows,
    Terms,
    Unit,
)
from securetm.data_classes import dataclass, replace
from securetm.errors import NeedsIntegers, check_setting
from securetm.mechanisms.clipping import at_most
from securetm.mechanisms.noising import check_positive, claims_alone, gaussian_answer
from securetm.mechanisms.samplers import Sampler, rounded_gaussian

if TYPE_CHECKING:
    from dp_accounting import DpEvent


_FOUND = 0.99
WORDS_PRIVATE = "the named words are differentially private"


@dataclass(frozen=True)
class WordSelection(Mechanism):
    """Names a word with its noised number of documents, if that number is above a threshold.

    A document (or a person, with all documents together) counts for at most `words_per_document` words, once each. The proof
    compares a party's documents with and without one of them. Words that both know are counted by the Gaussian mechanism,
    whose bound is sqrt(`words_per_document`). The others stand in that document alone, so each has a true count of 1, and
    there are at most `words_per_document`: the threshold lets one of them through with a chance of at most `miss`. The pair is
    thus no worse than a Gaussian answer together with a failure of that chance, `failure_probability`.
    """

    words_per_document: int
    noise_multiplier: float
    miss: float
    noise_by: ClassVar[NoiseBy] = NoiseBy.PARTY
    plan_numbers: ClassVar[Mapping[str, str]] = {"words": "noise_multiplier"}

    def __post_init__(self) -> None:
        check_positive(self, "noise_multiplier")
        check_setting(self, "words_per_document", 1 <= self.words_per_document < 1 << 31, "must be at least 1 and below 2^31")
        check_setting(self, "miss", 0 < self.miss < 0.5, "must lie between 0 and 1/2")

    @property
    def threshold(self) -> int:
        """Words with a noised count above this are named: the least count at which `miss` holds."""
        sigma = self._sigma
        least = max(1, ceil(0.5 - sigma * NormalDist().inv_cdf(self.miss / self.words_per_document)) - 1)
        while self.words_per_document * erfc((least - 0.5) / (sigma * sqrt(2))) / 2 > self.miss:  # P(1 + noise > least)
            least += 1
        return least

    @property
    def found_from(self) -> int:
        """The number of documents of one party at which a word is named in 99 of 100 selections."""
        return ceil(self.threshold + 0.5 + NormalDist().inv_cdf(_FOUND) * self._sigma)

    def naming_threshold(self) -> NamingThreshold:
        return NamingThreshold(self.threshold, self.found_from)

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The terms of selected words, whose naming this mechanism's event pays for; other questions pass.

        A sum of words in public cells names none. It gets the noise of this selection from the mechanism that adds noise.
        """
        if terms.counts_words:
            return replace(terms, multiplier=self.noise_multiplier / sqrt(terms.part))
        if not terms.names_words:
            return terms
        if terms.domain is not Domain.INTEGER:
            raise NeedsIntegers(type(self).__name__)
        unit = Unit.PERSON if terms.unit is Unit.PERSON else Unit.DOCUMENT
        done = replace(terms, names_words=False, noised=Noised.WHOLE, deviation=self._noise.deviation, unit=unit)
        return replace(done, l1=INF, l2=INF, linf=INF)  # nothing is left for another noise to cover, and none is added

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """Claims for the named words only, whatever other parties collude."""
        return frozenset(replace(claim, what=WORDS_PRIVATE) for claim in claims_alone(cohort))

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        """One Gaussian answer for terms whose words were selected here."""
        return gaussian_answer(self.noise_multiplier, terms) if self._selected(terms) else None

    def failure_probability(self, terms: Terms, cohort: Cohort) -> float:
        """The chance that a word of one document alone is named, and the distance of its noise from the ideal one.

        The noise of all other words is the same with and without the document, so its distance from the ideal tells nothing.
        """
        return self.miss + self.words_per_document * self._noise.failure_probability if self._selected(terms) else 0.0

    def on_rows(self, rows: Rows, terms: Terms) -> Rows:
        """Run by a party: keeps at most `words_per_document` words of each owner, once each."""
        return at_most(rows, self.words_per_document, 1) if terms.names_words else rows

    def on_named(self, sums: Array, terms: Terms, context: RoundContext) -> Array:
        """Run by a party: noised counts of the words that may be named, and 0 for all others."""
        if not terms.names_words:
            return sums
        noised = np.asarray(sums, dtype=np.int64) + self._noise.draw(context.entropy, len(sums))
        return np.where((np.asarray(sums) > 0) & (noised > self.threshold), noised, 0)

    @property
    def _sigma(self) -> float:
        return self.noise_multiplier * sqrt(self.words_per_document)

    @property
    def _noise(self) -> Sampler:
        return rounded_gaussian(self._sigma)

    def _selected(self, terms: Terms) -> bool:
        """Whether words were selected here: no other mechanism leaves noise on a vector without bounds, except word noise."""
        unbounded = terms.l1 == terms.l2 == terms.linf == INF
        return terms.noised is Noised.WHOLE and unbounded and terms.unit is not Unit.WORD
