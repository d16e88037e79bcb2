"""`which-profile.md` and its picture, from the questions, the decision and the figures of `securetm choose`.

Both are committed, and a test compares them: python -m docs.generate.choice_page
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from docs.generate.choice_picture import Leaf, Step, drawn
from docs.generate.folder_pages import ASSETS, ROOT
from docs.generate.markdown import code, listed, page, table
from lab.measuring import committed
from lab.papers.pictures import svg
from lab.papers.written import as_csv
from lab.reproduce.use_and_leakage import FIGURE, MEMBERS, MEMBERS_SELDOM, NETWORK, of_documents
from securetm.cli.choose import QUESTIONS
from securetm.plans.profile_choice import (
    COORDINATOR,
    DOCUMENT,
    NOBODY,
    ORGANISATION,
    PARTY,
    READER,
    SECRETS,
    TOTAL,
    Answers,
    changes,
    fitting,
)
from securetm.plans.profiles import profile_names, read_profile
from securetm.reports.choosing import bytes_said, cost_facts
from securetm.reports.committed_costs import by_cost, cost_of
from securetm.reports.profiles import ways_to_a_list
from securetm.threats import read_threat_model
from securetm.wording import counted

USE, USE_NARROW, USE_ROWS = (
    ASSETS / name for name in ("use-and-leakage.svg", "narrow/use-and-leakage.svg", "use-and-leakage.csv")
)
FILE, PICTURE = ROOT / "docs" / "which-profile.md", ASSETS / "which-profile.svg"
_NOBODY = Answers((NOBODY,), 5, 100_000, "explore", 0)
_READ_BY = {COORDINATOR: "the coordinator", PARTY: "another party", READER: "whoever gets the model"}


@dataclass(frozen=True)
class _Column:
    """A size of a federation, of which the table has a column."""

    title: str
    parties: int
    colluding: int


_SIZES = (
    _Column("5 parties or more, 2 collude", 5, 2),
    _Column("4 parties, 2 collude", 4, 2),
    _Column("3 parties, none colludes", 3, 0),
    _Column("7 parties, 4 collude", 7, 4),
)


@cache
def _place(name: str) -> Any:
    return by_cost(read_profile(name))


def leads_to(answers: Answers) -> str | None:
    """The profile that `securetm choose` answers with."""
    return fitting(answers, _place)


def _feared(looks: str, *hide: str, lies: bool = False) -> Answers:
    breaks = (looks,) if lies else (NOBODY,)
    return replace(_NOBODY, looks=(looks,), hide=hide, breaks=breaks, colluding=2)


# ---- the picture -----------------------------------------------------------------------------------------------------


def _leaf(answers: Answers) -> Leaf:
    name = leads_to(answers)
    assert name is not None
    return Leaf(name)


def decision_path() -> Step:
    """The path with five parties, two of which may collude, up to its last question, which is about their number."""
    lies, honest = _feared(COORDINATOR, DOCUMENT, lies=True), _feared(COORDINATOR, DOCUMENT)
    few = replace(honest, parties=3, colluding=0)
    parties = Step("Four parties or more, of which", "at most two collude?", yes=_leaf(honest), no=_leaf(few))
    documents = Step(
        "Might the coordinator",
        "look for documents?",
        yes=Step("May the coordinator", "lie to the parties?", yes=_leaf(lies), no=parties),
        no=_leaf(_feared(READER, DOCUMENT)),
    )
    summed = Step(
        "Might the coordinator look for",
        "what one organisation has?",
        yes=Step(
            "May the coordinator",
            "lie to the parties?",
            yes=_leaf(_feared(COORDINATOR, ORGANISATION, lies=True)),
            no=_leaf(_feared(COORDINATOR, ORGANISATION)),
        ),
        no=_leaf(_feared(READER, ORGANISATION)),
    )
    total = replace(_feared(COORDINATOR, ORGANISATION, TOTAL), colluding=0)
    hidden = Step("Must it stay hidden what a single", "document says, or that it is there?", yes=documents, no=summed)
    secret = Step("Must a coordinator without helpers", "get neither totals nor the model?", yes=_leaf(total), no=hidden)
    return Step("Might anybody look", "for what is not theirs?", yes=secret, no=_leaf(_NOBODY))


@cache
def _runs() -> dict[str, Any]:
    return committed("reproduce-use-and-leakage")


def use_picture(across: int = 2) -> str:
    """What protections cost in use, and what attacks still get of the same runs."""
    return svg(FIGURE, _runs()["plots"], across)


def use_rows() -> str:
    """The runs behind it, as CSV."""
    return as_csv(_runs())


def _leakage() -> Iterator[str]:
    said = _runs()
    sizes = " and ".join(f"{documents:,} documents of {corpus}" for corpus, documents in said["documents"].items())
    yield "## What each protection costs, and what attacks still get"
    yield "<!-- picture: use-and-leakage.svg -->"
    yield (
        f"Each point is a recorded run of {said['parties']} parties and {said['topics']} topics, on {sizes}, of which half are "
        "held out. Up: how many labels a classifier tells from the topics of held-out documents, over the best model in "
        "`open`. Across, on the left: what the coordinator's best attack finds of texts in that very run, over guessing. On "
        "the right: how many members a reader of the finished model tells while it accuses one other document in a hundred; "
        f"the most that so many documents can show is {_ceiling(said)}. "
        "The larger a point, the more a party sends in a round; a number beside it is epsilon, of each document, and under "
        "`iftm` of each word. Runs in one place share a mark in stripes. Lines are intervals (95 %, over documents of one "
        "run). A run has no point where no such attack is made for its model, or had nothing to look for: a coordinator of "
        "`bfv` or `ckks` sees encrypted sums alone, and `iftm` takes no embeddings. Sums of `masked_strict`, `bfv` and "
        "`ckks` are those of `masked`, so `prodlda` was not tried under them. `lda` took 30 rounds without a budget; more tell "
        "titles apart better, and noise in words seems to do so, too. "
        f"{_network(said)}A budget costs less where documents are more than the 4,000 to 5,000 that train here."
    )
    yield table(("model", "protection", *_heads(said)), _run_lines(said))
    yield (
        "To judge an attacker who accuses one other document in a thousand takes some 3,700 different documents that nobody "
        f"trained on. The table has that figure where there were so many{_seldom(said)}."
    )
    yield (
        "`dp-central` adds its noise at the coordinator, which sees the sums without it: it protects from readers, and "
        "`dp-distributed` from both. `python -m lab reproduce use-and-leakage` makes the runs again, in a clone; with "
        "`--only model=lda --only protection=masked --only 'corpus=20 Newsgroups'` it makes one. Their figures, with the "
        "attack behind each and its interval and ceiling, are a [table](assets/use-and-leakage.csv)."
    )


def _seldom(said: dict[str, Any]) -> str:
    judged = any(of_documents(row["protection"]) for row in said["rows"] if f"{MEMBERS_SELDOM}_gained" in row)
    return "" if judged else ": under a budget there were not"


def _network(said: dict[str, Any]) -> str:
    """How a network was trained, and what noise leaves of it."""
    runs = [row for row in said["rows"] if row["model"] == NETWORK]
    free, noised = ([row for row in runs if of_documents(row["protection"]) == budget] for budget in (False, True))
    rounds, under = (", ".join(f"{count:,}" for count in sorted({row["rounds"] for row in part})) for part in (free, noised))
    left = f", and {under} under a budget: noise in so many weights leaves it a use of at most" if noised else ""
    most = f" {max(row['use'] for row in noised):.2f}" if noised else ""
    return f"The network `{NETWORK}` took {rounds} rounds{left}{most}. " if free else ""


def _ceiling(said: dict[str, Any]) -> str:
    return f"{min(row['members_gained_ceiling'] for row in said['rows'] if 'members_gained' in row):.1%}"


def _heads(said: dict[str, Any]) -> Iterator[str]:
    for corpus in said["documents"]:
        yield from (f"{corpus}: use", "texts", "members", "at 0.1 %")


def _run_lines(said: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    by = {(row["model"], row["protection"], row["corpus"]): row for row in said["rows"]}
    for model, protection in dict.fromkeys((model, protection) for model, protection, _ in by):
        cells = []
        for corpus in said["documents"]:
            row = by.get((model, protection, corpus), {})
            cells += [f"{row[name]:.2f}" if name in row else "" for name in ("use", "texts_gained")]
            kinds = (MEMBERS, MEMBERS_SELDOM)
            cells += [f"{row[f'{kind}_gained']:.1%}" if f"{kind}_gained" in row else "" for kind in kinds]
        yield code(model), protection, *cells


def picture() -> str:
    """The decision path as a drawing."""
    return drawn(decision_path())


# ---- the page --------------------------------------------------------------------------------------------------------


def choice_page() -> str:
    """The whole page."""
    return page(
        "---\nhide:\n  - toc\n---",
        "<!-- Made by `python -m docs.generate.choice_page`: change that file, and not this one. -->",
        "# Which profile do I need?",
        "`securetm choose` asks six questions. It answers with one profile, the reason, what it costs, what it does not "
        "protect, and a plan. It never takes a profile that promises less than was asked: where none fits, it says what would "
        "have to change, and exits 1.",
        *_leakage(),
        "## The path",
        "<!-- picture: which-profile.svg -->",
        "The picture is its path for five parties.",
        _EXAMPLE,
        "## The questions",
        listed(_questions()),
        "## Where the answers lead",
        "Of all profiles without a gap it takes the one that costs least: quality first, then bytes. In each cell stands what "
        f"it answers for 100,000 documents. Where nobody looks it is {_linked(leads_to(_NOBODY))}.",
        *_outcomes(),
        "A party that may lie is kept out as one that looks for documents: only noise limits what it can find out. "
        "A model that goes to others has readers that look.",
        *_never(),
        "## What each costs",
        table(("profile", "it needs", "perplexity", "F1", "bytes"), map(_cost_row, _ranked())),
        *_measured(),
        "## How the parties come to a list of words",
        *_lists(),
        "## What each does not protect",
        listed(_limits()),
        _CHECKED,
    )


def _lists() -> Iterator[str]:
    """What each way to a list shows, finds and costs, and how far columns without names can be named."""
    said, matched = committed("bench-word-lists"), committed("reproduce-column-matching")
    figures = {row["case"]: row["ours"] for row in said["rows"]}
    kinds = ("words", "until all have the list", "from each party")

    def line(way: dict[str, Any]) -> tuple[str, ...]:
        case = f"{way['list']}, epsilon 3" if way["noised"] else way["list"]
        words, seconds, megabytes = (figures[f"{case}: {kind}"] for kind in kinds)
        shown = case if way["noised"] else code(case)
        return shown, way["coordinator"], way["party"], f"{words:,.0f}", f"{seconds:.0f}", f"{megabytes:.1f}"

    heads = ("list", "the coordinator learns", "other parties learn", "words", "seconds", "MB from each party")
    yield table(heads, map(line, ways_to_a_list(read_profile("masked"))))
    yield (
        f"{said['parties']} parties with {said['documents']:,} documents of {said['corpus']}, all roles in one process. "
        "A public list is English. Behind noise a quarter of epsilon finds words; `joint` finds those of a public list only, "
        "and `blind` any. [One party that helps](limits.md#in-the-list-of-words) the coordinator lets it look up every word."
    )
    opened, many = "blind, opened by the parties", "blind, {} parties of 200,000 words each"
    above = [figures[f"{many.format(parties)}: memory of all roles above their documents"] for parties in (10, 20)]
    yield (
        "Under `bfv`, whose parties open the sums, a blind list takes "
        f"{figures[f'{opened}: until all have the list']:.0f} s and {figures[f'{opened}: from each party']:.1f} MB "
        "from each party. Ten parties of 200,000 words each come to one in "
        f"{figures[f'{many.format(10)}: until all have the list']:.0f} s, with {above[0]:.0f} MiB above their documents; "
        f"twenty need {above[1]:.0f} MiB."
    )
    exact, *noised = matched["rows"]
    under = ", ".join(f"{row['named_by_pairs']:.0%} at epsilon {row['epsilon']:g}" for row in noised)
    yield (
        f"Of {exact['columns']:,} columns, an attacker with other documents of the same corpus names "
        f"{exact['named_by_ranks']:.1%} by their frequencies, and {exact['named_by_pairs']:.1%} by exact pairs of columns, "
        f"which `moments` asks for; behind noise {under}. `python -m lab reproduce column-matching` makes the figures again."
    )


_EXAMPLE = """Five hospitals have a coordinator that studies what it gets; at most two of them would help it:

```toml
# hospitals.toml
parties = 5
documents = 20000
per_person = 5
purpose = "explore"
looks = ["coordinator"]
hide = ["document"]
breaks = ["nobody"]
colluding = 2
```

```console
$ securetm choose --answers hospitals.toml --out plan.toml
dp-distributed: Masked sums with a share of noise from every party: only a
noised total is ever opened, and no single role is trusted to add the noise
...
The plan is in plan.toml; next: securetm check plan.toml
$ securetm check plan.toml
...
No gap: every claim that the threat model private_answers requires is made.
```

Under a budget the plan has the model, start, words, topics and rounds of which most is
[expected](how-to/choose-epsilon.md#4-ask-whether-the-model-will-be-of-use). Epsilon is that of all trainings that you name.

Without the file the command asks. An option goes before the file: with a coordinator that may lie, no profile fits three
hospitals.

<!-- fails with 1 -->
```console
$ securetm choose --answers hospitals.toml --parties 3 --breaks coordinator
No profile promises all of that.
...
```"""

_CHECKED = """## Compare, and check

```console
$ securetm compare-profiles masked dp-distributed
$ securetm explain dp-distributed
```

`explain` says who sees what, what protects it and what is spent. `securetm check` names every gap between a profile, or a plan,
and its threat model, and exits 1 if there is one. A profile of your own is a file that ends in `.toml`."""


def _questions() -> Iterator[str]:
    for question in QUESTIONS:
        options = "; ".join(f"`{name}`: {meaning}" for name, meaning in question.options.items())
        several = " Several are possible." if question.several else ""
        text = question.text.partition(" Several")[0]
        yield f"`{question.flag}`: {text}{several}" + (f" ({options})" if options else "")


def _outcomes() -> Iterator[str]:
    """For each choice of secrets, a table of who looks, and how large the federation is."""
    for hide in ((ORGANISATION,), (DOCUMENT,), (ORGANISATION, DOCUMENT), (ORGANISATION, TOTAL)):
        yield f"Hidden: {' and '.join(code(one) for one in hide)} ({'; '.join(map(_short, hide))})."
        alike: dict[tuple[str, ...], list[str]] = {}
        for looker, *cells in _rows(hide):
            alike.setdefault(tuple(cells), []).append(looker)
        yield table(("from", *(size.title for size in _SIZES)), (("; ".join(who), *cells) for cells, who in alike.items()))


def _rows(hide: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for looker in (COORDINATOR,) if TOTAL in hide else (COORDINATOR, PARTY, READER):
        for lies in (False,) if looker == READER else (False, True):
            answers = _feared(looker, *hide, lies=lies)
            cells = (_cell(replace(answers, parties=size.parties, colluding=size.colluding)) for size in _SIZES)
            yield _READ_BY[looker] + (", which may lie" if lies else ""), *cells


def _short(secret: str) -> str:
    return SECRETS[secret].partition(":")[0]


def _cell(answers: Answers) -> str:
    name = leads_to(answers)
    if name is not None:
        return _linked(name)
    change = next(changes(answers, _place), None)
    return f"none, but with {change.instead}" if change else "none"


def _linked(name: str | None) -> str:
    return f"[`{name}`](../protocols/profiles/{name}.toml)"


def _never() -> Iterator[str]:
    """Profiles that no answers lead to, with what beats them."""
    iftm, local = cost_of(read_profile("iftm")), cost_of(read_profile("dp-local"))
    yield (
        f"No answers lead to {_linked('iftm')} or {_linked('ckks')}. `iftm` hides which word stood at a place, and not "
        f"documents; its perplexity is {iftm.quality_lost:.2f} times that without noise, where `dp-local`, which hides "
        f"documents, has {local.quality_lost:.2f} times. What `iftm` saves is that it pays once for any number of models "
        "on the same documents. `ckks` promises what `bfv` does, of real numbers instead of whole ones."
    )


def _ranked() -> list[str]:
    return sorted(profile_names(), key=_place)


def _cost_row(name: str) -> tuple[str, ...]:
    profile, cost = read_profile(name), cost_of(read_profile(name))
    least = f"{counted(profile.minimum_parties, 'party', 'parties')}, {counted(profile.minimum_documents, 'document')}"
    budget = f", epsilon {cost.epsilon:g}" if cost.epsilon else ""
    f1 = "" if cost.f1 is None else f"{cost.f1:.2f}"
    return (
        _linked(name),
        least + budget,
        f"{cost.perplexity:.0f}",
        f1,
        bytes_said(cost_facts(cost)),
    )


def _limits() -> Iterator[str]:
    """What a profile does not protect, with every profile of which it is so."""
    exposed: dict[str, list[str]] = {}
    for name in _ranked():
        profile = read_profile(name)
        for risk in filter(None, (profile.danger.rstrip("."), *read_threat_model(profile.threat_model).risks)):
            exposed.setdefault(risk, []).append(code(name))
    for risk, names in exposed.items():
        yield f"{', '.join(names)}: {risk}."


def _measured() -> Iterator[str]:
    """What stands behind the figures of cost."""
    shared, iftm = cost_of(read_profile("dp-distributed")), cost_of(read_profile("iftm"))
    yield (
        f"Perplexity of held-out words is {shared.perplexity_without_noise:.0f} without noise, and "
        f"{shared.perplexity_of_frequencies:.0f} by word frequencies alone; F1 of a classifier on the topics is "
        f"{shared.f1_without_noise:.2f} without noise, and {shared.f1_without_documents:.2f} on topics of public word vectors, "
        f"which no document made ({shared.setting}). Perplexity of `iftm` is {iftm.perplexity_without_noise:.0f} without noise "
        f"({iftm.setting})."
    )
    others: dict[str, list[str]] = {}
    for name in _ranked():
        if (under := cost_of(read_profile(name)).measured_under) != name:
            others.setdefault(under, []).append(code(name))
    said = "; ".join(f"{' and '.join(names)} that of {code(under)}" for under, names in others.items())
    commands = sorted({code(one) for name in _ranked() for one in cost_of(read_profile(name)).sources})
    yield f"A profile without figures of its own has those of the nearest one: {said}. Made by {', '.join(commands)}."


if __name__ == "__main__":
    FILE.write_text(choice_page(), "utf-8")
    PICTURE.write_text(picture(), "utf-8")
    USE.write_text(use_picture(), "utf-8")
    USE_NARROW.write_text(use_picture(1), "utf-8")
    USE_ROWS.write_text(use_rows(), "utf-8")
