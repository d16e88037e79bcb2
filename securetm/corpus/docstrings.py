"""The demonstration corpus: docstrings of installed packages, read by parsing their source. None of them is imported.

They make five parties with different subjects for `securetm run` without a plan. They are public, so no privacy is at stake.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib.machinery
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path

from securetm.corpus.building import CorpusBuilder, Embed
from securetm.corpus.corpus import Corpus
from securetm.corpus.records import Record
from securetm.corpus.tokeniser import ENGLISH, Tokeniser
from securetm.errors import CannotWrite, Mistake, NoSuchPath, Unreadable
from securetm.resources import user_cache

_RULE = re.compile(r"^\s*([-=~^\"'#*+])\1{2,}[\s\-=~^\"'#*+|]*$")
_DOCTEST = re.compile(r"^\s*(>>>|\.\.\.(\s|$)|In \[\d+\]:|\$ )")
_CODE_DIRECTIVE = re.compile(
    r"^\s*\.\.\s+(math|code|code-block|sourcecode|plot|ipython|test\w+|doctest|image|figure|table|highlight|include|"
    r"currentmodule|autosummary|auto\w+|toctree|_[^:]*|\[)(::|:|\s|$)"
)
_DIRECTIVE = re.compile(r"^\s*\.\.\s+[\w-]+::")
_TYPED = re.compile(r"^\s*[*`\w][*`\w, .]*\s:\s.*$")  # numpydoc's "axis : int, optional"
_NAMED = re.compile(r"^\s*(?:[-*]\s+)?[*`]*\w+[`*]*\s*(?:\([^)]*\))?:(?=\s|$)")  # Google's "dim (int): ..." and "Args:"
_FIELD = re.compile(r"^\s*:\w+[^:]*:\s")  # Sphinx's ":param x: ..."
_INLINE = re.compile(r":math:`[^`]*`|``[^`]*``|\$[^$\n]*\$|https?://[^\s>`]+|\{[^}\n]*\}")
_ROLE = re.compile(r":[\w:+-]+:(?=`)")
_TARGET = re.compile(r"`[~!]?(?:[\w.]+\.)?([^`<]*)(?:<[^`]*>)?`_?")


def prose(docstring: str) -> str:
    """The sentences of a docstring; blank lines, which end a sentence, are kept."""
    lines = (_FIELD.sub("", _NAMED.sub("", line, count=1), count=1) for line in _without_code(docstring.splitlines()))
    text = "\n".join(lines)  # without the names that lines describe
    text = _TARGET.sub(r"\1", _ROLE.sub("", _INLINE.sub(" ", text)))
    return text.strip()


def _without_code(lines: list[str]) -> Iterator[str]:
    hidden = -1  # lines indented deeper than this belong to a block of code
    answering = False  # the output of a doctest goes up to the next blank line
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            answering = False
            yield ""
            continue
        if hidden >= 0 and indent > hidden:
            continue
        opens_code = _CODE_DIRECTIVE.match(line) or (line.rstrip().endswith("::") and not _DIRECTIVE.match(line))
        hidden = indent if opens_code else -1
        answering = answering or bool(_DOCTEST.match(line))
        if not (answering or _is_markup(line, lines[number + 1] if number + 1 < len(lines) else "")):
            yield _DIRECTIVE.sub("", line).removesuffix("::")


def _is_markup(line: str, below: str) -> bool:
    """Whether a line is a rule, a heading above one, or only a name with its type."""
    return bool(_RULE.match(line) or _RULE.match(below) or _TYPED.match(line) or _CODE_DIRECTIVE.match(line))


STANDARD_LIBRARY = "standard library"
# Distribution -> folder, the best first. Where some are not installed, those after them take their places.
PACKAGES = {
    "numpy": "numpy", "scipy": "scipy", "torch": "torch", "scikit-learn": "sklearn",
    "numba": "numba", "mpmath": "mpmath", "cryptography": "cryptography",
}  # fmt: skip
PARTIES = 5  # at most, the standard library among them
FEWEST_WORDS = 20  # of a docstring that counts as a document
OnPackage = Callable[[str, int, int], None]  # party, files read, files in all

_FORMAT = 5  # of the cache: raise it when reading changes
_GENRE = """
parameter parameters argument arguments arg args kwargs return returns returned returning optional default defaults true false
none int float str bool list tuple dict object objects function functions method methods class classes instance instances
attribute attributes value values type types string strings example examples note notes raise raises raised specified specify
specifies given based contains contain corresponding called call calls passed pass following supported support allow allows
self param code version added deprecated changed module used set sets
"""
_NOT_PROSE = frozenset(
    ("test", "tests", "testing", "_testing", "idlelib", "lib2to3", "turtledemo", "pydoc_data", "site-packages", "dist-packages")
)
_NODES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
TOKENISER = Tokeniser(stop_words=(*sorted(ENGLISH), *_GENRE.split()))


def docstring_parties(
    on_progress: OnPackage | None = None, cache: Path | None = None, *, embed: Embed | None = None, embedded_as: str = ""
) -> dict[str, Corpus]:
    """One corpus of docstrings per installed package, from the cache after the first time.

    `cache` is a folder; without it, the user's own. `embed` makes embeddings, and `embedded_as` is their name there.
    A package that is not installed is left out; one alone makes no federation.
    """

    def corpus_of(party: str, folder: Path) -> Corpus:
        named = f"docstrings-{party.replace(' ', '-')}-{_fingerprint(party, folder)}"
        kept = (cache or user_cache()) / f"{named}{'-' if embed else ''}{embedded_as}.npz"
        with suppress(NoSuchPath, Mistake, Unreadable):  # without the cache, the source is read
            return Corpus.load(kept)
        builder = CorpusBuilder(TOKENISER, name=party, source=str(folder), embed=embed)
        for text in _texts(_sources(folder), partial(on_progress, party) if on_progress else None):
            builder.add(Record(text, party=party))
        corpus = Corpus(*builder.finish())
        with suppress(CannotWrite):  # then the source is read again next time
            corpus.save(kept)
        return corpus

    return {party: corpus_of(party, folder) for party, folder in _installed().items()}


def docstrings_in(source: bytes) -> Iterator[str]:
    """The docstrings of a module, its classes and functions, in the order of the file. Source that does not parse has none."""
    if b'"""' not in source and b"'''" not in source:
        return
    try:
        waiting: list[ast.AST] = [ast.parse(source)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # a template, or the grammar of another version
    while waiting:
        node = waiting.pop()
        text = ast.get_docstring(node) if isinstance(node, _NODES) else None
        if text:
            yield text
        waiting.extend(reversed(_inner(node)))


def _inner(node: ast.AST) -> list[ast.AST]:
    """The statements that may contain further functions and classes, in the order of the file."""
    if not isinstance(node, (*_NODES, ast.If, ast.Try, ast.With, ast.ExceptHandler)):
        return []
    fields = dict(ast.iter_fields(node))
    return [statement for part in ("body", "orelse", "handlers") for statement in fields.get(part, ())]


def _installed() -> dict[str, Path]:
    found = {STANDARD_LIBRARY: Path(sysconfig.get_paths()["stdlib"])}
    for party, name in PACKAGES.items():
        if len(found) == PARTIES:
            break
        spec = importlib.machinery.PathFinder.find_spec(name)  # looks along the path, imports nothing
        if spec is not None and spec.origin:
            found[party] = Path(spec.origin).parent
    there = {party: folder for party, folder in found.items() if folder.is_dir()}
    if len(there) < 2:
        raise Mistake(
            "only {found} of the packages whose docstrings make the built-in documents are installed here",
            hint="name your own documents in a plan, or install another of {known}",
            found=len(there),
            known=tuple(PACKAGES),
        )
    return there


def some_docstrings(most: int) -> dict[str, list[str]]:
    """The texts of at most so many docstrings of each installed package: the same ones each time, from all over the package."""
    found = {}
    for party, folder in _installed().items():  # in an order that is the same on every machine, and that no alphabet decides
        files = sorted(_sources(folder), key=lambda file: hashlib.sha256(file.name.encode()).digest())
        found[party] = list(islice(_texts(files), most))
    return found


def _texts(files: Sequence[Path], on_file: Callable[[int, int], None] | None = None) -> Iterator[str]:
    """Each docstring of these files that is long enough to count as a document, once, without markup."""
    seen: set[bytes] = set()
    with _parsing():
        for done, file in enumerate(files, 1):
            for text in map(prose, docstrings_in(file.read_bytes())):
                digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
                words = sum(any(map(str.isalpha, word)) for word in text.split())
                if digest not in seen and words >= FEWEST_WORDS:
                    yield text
                seen.add(digest)
            if on_file and (done % 50 == 0 or done == len(files)):
                on_file(done, len(files))


def _sources(folder: Path) -> Sequence[Path]:
    """Python files in the order of their names, without test suites."""
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_PROSE)
        found += [Path(where, name) for name in sorted(names) if name.endswith(".py")]
    return found


@contextmanager
def _parsing() -> Iterator[None]:
    """Parses without warnings about other people's code, and without garbage collection: syntax trees hold no cycles."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if collecting:
            gc.enable()


def _fingerprint(party: str, folder: Path) -> str:
    """Changes whenever the same source, or the same reading of it, might give other documents."""
    version = ""  # the standard library comes with Python's own version
    if party in PACKAGES:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as version_of

        try:
            version = version_of(party)
        except PackageNotFoundError:  # a copy on the path that is not installed
            version = f"{folder} {folder.stat().st_mtime_ns}"
    settings = (_FORMAT, sys.version, version, FEWEST_WORDS, repr(TOKENISER), sorted(_NOT_PROSE))
    return hashlib.blake2b(repr(settings).encode(), digest_size=8).hexdigest()
