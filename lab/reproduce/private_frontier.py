"""Utility against epsilon per document: every private model beside its limits, on news, snippets, titles and few documents.

A row is a federation of five parties with ledgers of its own, or stands beside them without privacy or without documents. Means
over seeds, curves and goals are made of the rows in `frontier_findings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab.documents import JudgedDocuments
from lab.federations import dealt_out, federated
from lab.keeping import KeptRows, Key, made
from lab.measuring import OnProgress, Row, timed
from lab.peers.other_packages import PeerMissing
from lab.reproduce.contenders import (
    AGAIN,
    BESIDE,
    FEDERATED,
    FIRM,
    FREQUENCIES,
    MOMENTS,
    NEVER_PRIVATE,
    NOISED,
    PLAIN,
    PUBLIC,
    SPECTRAL,
    STARTED,
    STARTED_PLAIN,
    TOLD,
    shown_as,
)
from lab.reproduce.frontier_cases import (
    CENTRAL,
    CORPORA,
    DISTRIBUTED,
    HALF,
    LOCAL,
    NEWS,
    NEWS_FEW,
    NO_NOISE,
    PARTIES,
    SNIPPETS,
    SNIPPETS_FEW,
    TITLES,
    FrontierBlock,
    FrontierCase,
    chosen,
    documents_of,
    frontier_corpora,
)
from lab.reproduce.frontier_findings import found
from lab.research_corpora import INSTEAD
from securetm.errors import SecuretmError

SEEDS = (0, 1, 2)


def blocks(corpora: Sequence[str]) -> list[FrontierBlock]:
    """What is tried: everything by central noise on 20 Newsgroups, and less of the rest; most seeds of what is recommended."""
    private, oracles = (PUBLIC, PLAIN, MOMENTS), [name for name, one in FEDERATED.items() if one.oracle]
    both, beside, few = (NO_NOISE, CENTRAL), NEVER_PRIVATE, (NEWS_FEW, SNIPPETS_FEW)
    if INSTEAD in corpora:
        return [FrontierBlock(INSTEAD, 20, private, both, (0,)), FrontierBlock(INSTEAD, 20, beside, (NO_NOISE,), (0,))]
    return [
        *(FrontierBlock(name, 20, beside, (NO_NOISE,), (0,)) for name in CORPORA),
        FrontierBlock(NEWS, 20, (PUBLIC,), both, SEEDS),
        FrontierBlock(NEWS, 20, (PLAIN, MOMENTS), both, SEEDS[:2]),
        FrontierBlock(NEWS, 20, (STARTED, STARTED_PLAIN), (CENTRAL,), SEEDS),
        FrontierBlock(NEWS, 20, (STARTED, STARTED_PLAIN), (NO_NOISE,), SEEDS[:1]),
        *(FrontierBlock(name, 20, (STARTED, STARTED_PLAIN), (CENTRAL,), SEEDS[:1]) for name in (TITLES, NEWS_FEW)),
        FrontierBlock(TITLES, 20, (TOLD,), (CENTRAL, DISTRIBUTED, LOCAL), SEEDS[:1]),
        FrontierBlock(NEWS, 20, (AGAIN, FIRM), both, SEEDS[:1]),
        FrontierBlock(NEWS, 20, oracles, (CENTRAL,), (0,)),
        FrontierBlock(NEWS, 20, (PUBLIC,), (DISTRIBUTED,), SEEDS),
        FrontierBlock(NEWS, 20, [name for name in private if name != PUBLIC], (DISTRIBUTED,), (0,)),
        FrontierBlock(NEWS, 20, private, (LOCAL,), (0,)),
        FrontierBlock(NEWS, 20, (PUBLIC, PLAIN), both, (0,), judging=HALF),
        *(FrontierBlock(name, 20, (SPECTRAL,), both, (0,)) for name in CORPORA),
        *(FrontierBlock(name, 20, (NOISED,), (CENTRAL, DISTRIBUTED, LOCAL), (0,)) for name in CORPORA),
        FrontierBlock(NEWS, 50, beside, (NO_NOISE,), (0,)),
        FrontierBlock(NEWS, 50, private, both, (0,)),
        *(FrontierBlock(name, 20, (*private, FIRM), both, (0,)) for name in (SNIPPETS, TITLES)),
        *(FrontierBlock(name, 20, (PUBLIC,), both, SEEDS) for name in few),
        *(FrontierBlock(name, 20, (PLAIN, MOMENTS), both, SEEDS[:1]) for name in few),
        *(FrontierBlock(name, 20, oracles, (CENTRAL,), (0,)) for name in few),
        *(FrontierBlock(name, 20, (PUBLIC,), (DISTRIBUTED, LOCAL), (0,)) for name in (SNIPPETS, TITLES, NEWS_FEW)),
    ]


def reproduce(
    on_progress: OnProgress | None = None, only: Sequence[str] = (), keep: Path | None = None, workers: int = 1
) -> Row:
    """Trains every case, or those that fit `only`; rows in the file `keep` are not made again, and further ones are added."""
    cases = [case for block in blocks(tuple(frontier_corpora())) for case in block.cases()]
    cases = chosen(dict.fromkeys(cases), only)
    keys = [{**case.key(), "settings": settings_of(case, len(documents_of(case.corpus).raw))} for case in cases]
    seconds, rows = timed(lambda: made(keys, row, KeptRows(keep), workers, on_progress))
    complete = [one for one in rows if "missing" not in one]
    missing = sorted({one["missing"] for one in rows if "missing" in one})
    return {**found(complete), "missing": missing, "cases": len(cases), "minutes": round(seconds / 60, 1), "workers": workers}


def settings_of(case: FrontierCase, documents: int) -> Mapping[str, Any]:
    """What a federation of this case is told beside its words, so that a kept row is of these settings; nothing for others."""
    contender = FEDERATED.get(case.model)
    return {} if contender is None else contender.tables(case.topics, documents, case.epsilon, case.judging)


def row(key: Key) -> Row:
    case = FrontierCase(**{name: value for name, value in key.items() if name != "settings"})
    documents = documents_of(case.corpus)
    try:
        tried = case.model in FEDERATED
        facts = federation_row(case, key["settings"], documents) if tried else beside_row(case, documents)
    except (PeerMissing, SecuretmError) as reason:
        return {**case.key(), "missing": f"{case.model}, {case.corpus}: {reason}"}
    return {**case.key(), **facts}


def federation_row(case: FrontierCase, tables: Mapping[str, Any], documents: JudgedDocuments) -> Row:
    """One federation with new ledgers: what it predicts, what its first party's ledger says, and what it cost."""
    plan = {"seed": case.seed, "profile": case.profile, **tables}
    changed = FEDERATED[case.model].changed
    parties = dealt_out(documents.raw, PARTIES)
    run = federated(parties, documents.words, plan, lambda agreement: changed(agreement, documents))
    held = documents.held_back(1 - case.judging, case.seed)[1]
    cost = {"spent": run.spent, "noise": run.plan.privacy.noise, "rounds": run.rounds}
    cost |= {"seconds": round(run.seconds, 2), "megabytes": round(run.megabytes, 2)}
    return {**cost, **documents.figures(run.model, run.state, held)}


def beside_row(case: FrontierCase, documents: JudgedDocuments) -> Row:
    """Topics that no federation learned, judged alike."""
    seconds, topics = timed(partial(BESIDE[case.model], documents, case))
    model, state = shown_as(topics)
    held = documents.held_back(1 - case.judging, case.seed)[1]
    figures = documents.figures(model, state, held)
    if case.model in (FREQUENCIES, NOISED):  # its topics are all alike: there is nothing to read or to classify by
        figures |= {name: None for name in figures if name != "held_out"}
    return {"seconds": round(seconds, 2), **figures}
