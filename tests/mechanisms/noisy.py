"""Terms that noise is tried on. It tests nothing itself."""

from __future__ import annotations

from dataclasses import replace

from securetm.contracts import Block, Domain, Terms
from securetm.testing.mechanism_laws import each_terms, integer_terms

BOUNDED = integer_terms(l1=11.0, l2=11**0.5, linf=1.0)
COUNTS = integer_terms()
REAL = replace(COUNTS, domain=Domain.REAL, l2=1.0)
EACH = replace(each_terms(), domain=Domain.INTEGER, l1=8.0, l2=8**0.5)
GRADIENT = Terms((Block("gradient", (400,)),), bits=32)
