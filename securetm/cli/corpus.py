"""`securetm corpus`: documents on disk in blocks, for a corpus beyond memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli.command import Group, Output, help_alone, member
from securetm.cli.options import ARGUMENT, COLUMN, Text
from securetm.cli.run import plan_settings
from securetm.errors import NoSuchPath
from securetm.settings import from_table, require

if TYPE_CHECKING:
    from rich.console import Console

    from securetm.corpus.given_texts import SeenLanguage
    from securetm.corpus.records import Columns
    from securetm.corpus.tokeniser import Tokeniser

_MB = 1 << 20


@member("Write documents to disk in blocks.", "notes.jsonl --out notes")
def build(
    to: Output,
    source: Annotated[str, ARGUMENT, "A file, a folder of .txt, or a folder of .parquet, .jsonl or .csv files."],
    out: Annotated[Path, "Folder of the corpus; the folder of a build that was stopped goes on."],
    plan: Annotated[Path | None, "A plan whose tokeniser and embeddings are used."] = None,
    text: Text = None,
    label: Annotated[str | None, "The column of the label.", COLUMN] = None,
    party: Annotated[str | None, "The column of who holds the document.", COLUMN] = None,
    date: Annotated[str | None, "The column of the date.", COLUMN] = None,
    person: Annotated[str | None, "The column of whose document it is.", COLUMN] = None,
    embedding: Annotated[str | None, "The column of the embedding.", COLUMN] = None,
    id_: Annotated[str | None, "--id", "The column of the document's own id.", COLUMN] = None,
    set_: Annotated[list[str] | None, "--set", "A setting of the tokeniser, as tokeniser.name=value."] = None,
    memory: Annotated[
        int | None, "MB that the command may take in all, without a sentence model; usually 1024.", {"min": 64}
    ] = None,
    block_documents: Annotated[int, "Documents that are read at once; it changes answers.", {"min": 1}] = 65_536,
    shards: Annotated[int, "Files; 0: one for 16 blocks. It changes no answer.", {"min": 0}] = 0,
) -> dict[str, Any]:
    """Reads documents as a stream and writes them to disk in blocks, with their words counted.

    The same source and settings give the same bytes, however often the build was stopped: give the same command again, with
    the same or another --memory. Order, keys and blocks of the documents are those of the same documents in memory.
    """
    from securetm.corpus.corpus_build import CorpusBuild, left_for_documents
    from securetm.corpus.records import Columns

    columns = Columns(text, label, party, date, person, embedding, id_)
    chosen = plan_settings(set_ or [])
    for name in chosen:
        own = name.startswith("tokeniser.")
        require(own, "securetm corpus build", "--set", name, "must be a setting of the tokeniser, such as tokeniser.ngrams=2")
    whole = None
    if plan is not None:
        from securetm.plans.recommend import whole_plan  # it brings the compiler of the models: 50 MB that documents may need

        whole = whole_plan(plan, chosen)
    tokeniser = _tokeniser(chosen) if whole is None else whole.tokeniser.make()
    unnamed = whole is None and "tokeniser.stop_words" not in chosen
    if unnamed and memory is None and (seen := language_in(source, columns)).foreign:  # lists of languages take memory
        to.note(
            f"The documents read as {seen.name}, and stop words of English are taken: function words will be among the topics. "
            f"Stop words of {seen.name}: --set tokeniser.stop_words={seen.foreign}, here and in each run."
        )
    with to.bars() as bars:
        embed = None
        if whole is not None and not embedding:
            from securetm.federation.sources import embed_of

            embed = embed_of(whole, bars)
        manifest = CorpusBuild(
            source,
            out,
            columns,
            tokeniser,
            block_documents,
            shards,
            left_for_documents(memory, source, columns),
            embed,
            whole.embeddings.embedder().identity if whole and embed else "",
            bars,
        ).run()
    facts = manifest.facts(out)
    _show_manifest(facts, to.results)
    return facts


@member("Say what a corpus on disk holds.", "notes")
def show(
    to: Output,
    folder: Annotated[Path, ARGUMENT, "A folder that `securetm corpus build` wrote."],
    verify: Annotated[bool, "--verify", "Read all documents, and compare them with their digests."] = False,
) -> dict[str, Any]:
    """Says how many documents, words, blocks and files a corpus on disk has, with which settings it was built, and its digest.

    No document is shown. Its files are compared in size with what was written; with --verify, every byte is.
    """
    from securetm.corpus.store import opened

    store = opened(folder)
    if verify:
        with to.late_bars() as bars:
            store.verify(bars)
    facts: dict[str, Any] = {**store.manifest.facts(folder), "verified": verify}
    _show_manifest(facts, to.results)
    return facts


@member("Make a public list of words and phrases.", "public.jsonl --out words.txt --phrases 200")
def words(
    to: Output,
    source: Annotated[Path, ARGUMENT, "A public corpus: a file, or a folder of .txt."],
    out: Annotated[Path, "File of the list, one word a line."],
    text: Text = None,
    max_words: Annotated[int, "Words, the most frequent ones.", {"min": 2}] = 2000,
    phrases: Annotated[int, "Phrases of two words that occur together more often than chance.", {"min": 0}] = 0,
    max_share: Annotated[float, "Leave out what is in more than this share.", {"min": 0, "max": 1}] = 0.5,
    min_documents: Annotated[int, "Leave out what is in fewer documents.", {"min": 1}] = 5,
    set_: Annotated[list[str] | None, "--set", "A setting of the tokeniser, as tokeniser.name=value."] = None,
) -> dict[str, Any]:
    """Makes a list for --vocabulary from a public corpus, whose words and phrases it shows: never from a party's documents.

    A training counts the phrases with --set tokeniser.ngrams=2. What a document may contribute stays bounded as before.
    """
    from securetm.corpus.public_words import JOINED, words_and_phrases
    from securetm.corpus.readers import read_corpus
    from securetm.corpus.records import Columns
    from securetm.reports.files import check_writable, write_report
    from securetm.wording import counted

    check_writable(out)
    settings = plan_settings([f"tokeniser.ngrams={2 if phrases else 1}", *(set_ or [])])
    for name in settings:
        require(name.startswith("tokeniser."), "securetm corpus words", "--set", name, "must be a setting of the tokeniser")
    if "tokeniser.stop_words" not in settings and (seen := language_in(str(source), Columns(text=text))).foreign:
        to.note(f"The documents read as {seen.name}, so its stop words are left out.")
        settings["tokeniser.stop_words"] = seen.foreign
    listed = words_and_phrases(
        read_corpus(source, text=text, tokeniser=_tokeniser(settings)), max_words, phrases, max_share, min_documents
    )
    require(len(listed) >= 2, "securetm corpus words", "--min-documents", min_documents, "leaves fewer than two words")
    write_report(out, "\n".join(listed) + "\n")
    joined = sum(JOINED in word for word in listed)
    counted_with = " A training counts phrases with --set tokeniser.ngrams=2." if joined else ""
    to.note(f"Written: {out}, with {counted(len(listed) - joined, 'word')} and {counted(joined, 'phrase')}.{counted_with}")
    return {"file": str(out), "words": len(listed) - joined, "phrases": joined}


@member("Make word vectors that begin at seed words.", "seeds.txt --topics 20 --out seeded.vec")
def seeds(
    to: Output,
    source: Annotated[Path, ARGUMENT, "Public seed words: a line for each topic, with blanks between words."],
    out: Annotated[Path, "File of the vectors."],
    topics: Annotated[int, "Topics in all; those beyond the lines are found among other words.", {"min": 2}] = 20,
    vectors: Annotated[str, "What says which words are near: glove, minilm, a file or a folder."] = "glove",
    vocabulary: Annotated[str, "Public words: a language, or a file, one a line."] = "english",
    most: Annotated[int, "--max-words", "Words of a language that get a vector.", {"min": 2}] = 20_000,
) -> dict[str, Any]:
    """Makes vectors for --start public --vectors FILE, so that each line of seed words is the beginning of a topic.

    No document is read. Under a budget, --public vectors=WHY says why the seeds are public.
    """
    import numpy as np

    from securetm.corpus.word_vectors import read_vectors
    from securetm.models.public_knowledge import seeded_vectors
    from securetm.plans.schema import TokeniserChoice, VocabularyChoice
    from securetm.reports.files import check_writable, write_report

    check_writable(out)
    if not source.is_file():
        raise NoSuchPath(str(source))
    lines = [line.split() for line in source.read_text("utf-8").splitlines() if line.split()]
    where = "securetm corpus seeds"
    require(len(lines) > 1, where, "SEEDS", str(source), f"must hold two lines of seeds or more, and holds {len(lines)}")
    enough = f"must be {len(lines)} at least, as each line of seeds has a topic of its own"
    require(len(lines) <= topics, where, "--topics", topics, enough)
    public = VocabularyChoice(source="file", file=vocabulary, max_words=most).public_words(TokeniserChoice().make()) or ()
    known = read_vectors(vectors, {*public, *(word for line in lines for word in line)})
    place = {word: number for number, word in enumerate(sorted(known.place))}
    for line in lines:
        require(any(word in place for word in line), where, "SEEDS", " ".join(line), f"has no word that {vectors} knows")
    rows = seeded_vectors(known.matrix(place), [[place[word] for word in line if word in place] for line in lines], topics)
    numbers = (" ".join(f"{value:.4f}" for value in row) for row in np.asarray(rows))
    write_report(out, "".join(f"{word} {row}\n" for word, row in zip(place, numbers, strict=True)))
    unknown = sorted({word for line in lines for word in line} - set(place))
    left = f" Without a vector: {', '.join(unknown)}." if unknown else ""
    to.note(f"Written: {out}, {len(place):,} words. Train with --start public --vectors {out} --topics {topics}.{left}")
    return {"file": str(out), "words": len(place), "unknown": unknown}


def _tokeniser(settings: dict[str, str]) -> Tokeniser:
    """The tokeniser of these settings alone, as in a plan: a whole plan would load its model, which takes memory."""
    from securetm.corpus.tokeniser import RECOMMENDED
    from securetm.plans.schema import TokeniserChoice

    own = {name.partition(".")[2]: value for name, value in settings.items()}
    return from_table(TokeniserChoice, {**RECOMMENDED, **own}, "[tokeniser]").make()


def language_in(source: str, columns: Columns) -> SeenLanguage:
    """The language of these documents, also where nothing is sure."""
    from securetm.corpus.given_texts import SeenLanguage
    from securetm.corpus.readers import glance

    return SeenLanguage(glance(source, columns).language)


def _show_manifest(facts: Mapping[str, Any], to: Console) -> None:
    from securetm.reports.document import Table
    from securetm.reports.terminal import show

    left_out = f" ({facts['left_out']:,} without a word are left out)" if facts["left_out"] else ""
    blocks = f"{facts['blocks']:,} of {facts['block_documents']:,} documents; the largest takes"
    rows = (
        ("documents", f"{facts['documents']:,}{left_out}"),
        ("words", f"{facts['words']:,} different, {facts['tokens']:,} in all"),
        ("columns", ", ".join(facts["columns"]) or "none but the text"),
        ("blocks", f"{blocks} {facts['largest_block_bytes'] / _MB:,.1f} MB"),
        ("files", f"{facts['shards']:,} of {facts['bytes'] / _MB:,.1f} MB together"),
        ("tokeniser", ", ".join(f"{name} = {value}" for name, value in facts["tokeniser"].items())),
        ("digest", facts["digest"]),
        *([("compared", "every byte is as it was written")] if facts.get("verified") else []),
    )
    show([Table(("", ""), rows, title=f"Corpus {facts['name']} in {facts['folder']}", kind="facts")], to)


def _about(context: typer.Context) -> None:
    """Builds and shows corpora on disk, which are read block by block: a training then needs memory for a few blocks.

    The folder is taken wherever documents are: `securetm run --corpus`, `source` in a plan and in PARTY.toml.
    """
    help_alone(context)


corpus = Group(
    "corpus",
    (build, show, words, seeds),
    _about,
    "build documents.jsonl --out documents",
)
