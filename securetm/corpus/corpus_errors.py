"""Errors of documents that cannot be read or used, with the file and the line. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import BadCorpus


class UnknownFormat(BadCorpus):
    """{path} is neither a file in a known format nor a folder with .txt files"""

    path: str
    hint = "use .jsonl, .csv or .tsv (each also .gz), .parquet, or a folder of .txt files"


class EmptyFile(BadCorpus):
    """{path} is empty"""

    path: str
    hint = "one document per line or row is needed"


class NoDocuments(BadCorpus):
    """{path}: none of its documents ({skipped}) holds a word that the tokeniser keeps"""

    path: str
    skipped: int
    hint = (
        "is the text column the right one (--text COLUMN)? do the tokeniser's settings fit the language (--set "
        "tokeniser.stop_words=none, --set tokeniser.min_length=2)?"
    )


class MissingColumn(BadCorpus):
    """{path}, line {line}: there is no column called {column!r}"""

    path: str
    line: int
    column: str
    role: str = "text"
    hint = (
        "name the column that holds the {role}: --{role} COLUMN (in a plan {role} of [corpus], in Python {role}=); the "
        "first line of a table holds the names of its columns"
    )


class IncompleteColumn(BadCorpus):
    """{path}, line {line}: some documents have a {column} and some have none"""

    path: str
    line: int
    column: str
    hint = "give every document a {column}, or none, or name another column: --{column} COLUMN"


class BadCell(BadCorpus):
    """{path}, line {line}: the {column} {problem}"""

    path: str
    line: int
    column: str
    problem: str
    hint = "correct that line, or name another column: --{column} COLUMN (in a plan {column} of [corpus], in Python {column}=)"


class BadTable(BadCorpus):
    """{path}, line {line}: {problem}"""

    path: str
    line: int
    problem: str
    hint = (
        "put cells that hold the delimiter, a double quote or a line break between double quotes, double each quote "
        "inside it, and end rows with LF or CRLF; the first line of a table holds the names of its columns, each once"
    )


class WrongEncoding(BadCorpus):
    """{path}, line {line}: this is not UTF-8"""

    path: str
    line: int
    hint = "convert the file first: iconv -f latin1 -t utf-8 OLD > NEW"


class NulByte(BadCorpus):
    """{path}, line {line}: there is a NUL byte in the text"""

    path: str
    line: int
    hint = "is it a text file, and UTF-8 rather than UTF-16? remove NUL bytes with: tr -d '\\000' < OLD > NEW"


class DocumentTooLong(BadCorpus):
    """{path}, line {line}: one document is longer than {megabytes} MB"""

    path: str
    line: int
    megabytes: int
    hint = "split it: one document per line, and a document is at most {megabytes} MB"


class TooManyWords(BadCorpus):
    """{where} has {words} words, and a document has at most {longest:,}"""

    where: str
    words: str
    longest: int
    hint = (
        "split it; or allow longer ones, as all parties must: `longest` in [tokeniser] of the plan, or `longest=` of a "
        "Tokeniser and of Corpus.from_counts"
    )


class InvalidJson(BadCorpus):
    """{path}, line {line}: this is not a JSON object"""

    path: str
    line: int
    hint = 'JSONL is one object per line, such as {{"text": "..."}}; a file that is one JSON array must be rewritten'


class DamagedFile(BadCorpus):
    """{path} is damaged or was cut short: {problem}"""

    path: str
    problem: str
    hint = "copy or download it again; compare its size with the original's"


class OtherVersion(BadCorpus):
    """{path} was written in version {found} of its format; this securetm reads version {known}"""

    path: str
    found: int
    known: int
    hint = "write it again with this securetm, or read it with the one that wrote it"


class CorpusNotHere(BadCorpus):
    """{folder} holds no {name}, a research corpus that is not part of securetm"""

    folder: str
    name: str
    origin: str
    documents: int
    sha256: str
    hint = (
        "get it ({origin}), write one JSON object with text and label a line ({documents} documents; the committed figures are "
        "of sha256 {sha256}), and name its folder: --data DIR"
    )


class UnlikeParts(BadCorpus):
    """a corpus has {found} {what} where {expected} are needed"""

    what: str
    found: int
    expected: int
    hint = "a column has one entry per document, a vocabulary names every word once, and every word id lies inside it"


class RepeatedKeys(BadCorpus):
    """{repeated:document has|documents have} the same key as another one"""

    repeated: int
    hint = "the same documents came in twice; if they are different documents of sources with one name, use rekeyed(NAME)"


class RepeatedIds(BadCorpus):
    """{path}: {repeated:document has|documents have} the same id as an earlier one"""

    path: str
    repeated: int
    hint = "an id names one document: name another column with --id, or none; then documents are named by what they say"


class UnlikeCorpora(BadCorpus):
    """some of these corpora have {what} and some have none, or of another width"""

    what: str
    hint = "read them the same way, or drop {what} with dataclasses.replace"


class NoColumn(BadCorpus):
    """the documents have no {column}"""

    column: str
    hint = "name the column that holds it: --{column} COLUMN (in a plan {column} of [corpus], in Python {column}=)"


class TooFewPackages(BadCorpus):
    """only {found} of the packages whose docstrings make the built-in documents are installed here"""

    found: int
    known: tuple[str, ...]
    hint = "name your own documents in a plan, or install another of {known}"


class NoDates(BadCorpus):
    """the documents of {where} have no dates"""

    where: str
    hint = "name the column of the date: --date COLUMN (in a plan date of [corpus], in Python date=)"


class BadDate(BadCorpus):
    """{where}, document {document}: {form!r} names no {wanted} (each digit is shown as 9, each letter as a)"""

    where: str
    document: int
    form: str
    wanted: str  # date; or month or day, where the date is coarser
    hint = "write dates as 2026-11-23, 2026-11 or 2026; a time may follow a day, as in 2026-11-23T18:30"
