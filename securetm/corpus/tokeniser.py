"""Turns a text into sentences of words: for any script, and the same at every party.

Scripts that put no space between words (Chinese, Japanese, Thai, Lao, Khmer and Burmese) need no dictionary: a long run of such
letters is cut into overlapping runs of a fixed length, as search engines do, so that every longer word is made of runs, and
found by them. A short run is a word as it stands, so that text with spaces between its words keeps them.

`prune` chooses a vocabulary by counts; under differential privacy that choice must be paid for or public.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from securetm.contracts import Array
from securetm.corpus.languages import ENGLISH_CODE, function_words, language_code
from securetm.corpus.markup import BEFORE_HASHTAG, BEFORE_NAME, cleaned, without_hashtags, without_names
from securetm.corpus.records import wrong_encoding
from securetm.data_classes import dataclass, fields
from securetm.errors import BadSetting, NoSuchPath

_PRONOUNS = """
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves one ones oneself who whom whose which what whoever whatever whichever
this that these those someone somebody something anyone anybody anything everyone everybody everything nobody nothing none
"""
_JOINTS = """
a an the and or but nor so yet if then else than because since while whereas whether although though unless until till as
about above across after against along alongside amid among amongst around at before behind below beneath beside besides
between beyond by despite down during except for from in inside into like near of off on onto opposite out outside over past
per round through throughout to toward towards under underneath unlike up upon versus via with within without
"""
_AUXILIARIES = """
am is are was were be been being have has had having do does did doing done can could may might must shall should will would
ought need dare cannot let lets got get gets getting gotten go goes going gone went
"""
_CONTRACTIONS = """
i'm i've i'd i'll you're you've you'd you'll he'd he'll she'd she'll we're we've we'd we'll they're they've they'd they'll
it'd it'll that'll that'd there'll who'd who'll isn't aren't wasn't weren't haven't hasn't hadn't don't doesn't didn't can't
couldn't won't wouldn't shan't shouldn't mustn't mightn't needn't ain't y'all im ive dont doesnt didnt cant couldnt wont
wouldnt shouldnt isnt arent wasnt werent hasnt havent hadnt ill id youre youve theyre thats theres whats
don doesn didn isn aren wasn weren hasn haven hadn couldn wouldn shouldn won ain ve ll re
"""
_ADVERBS = """
not no yes never ever always often sometimes usually rarely seldom again already almost also altogether any anyhow anyway
anywhere apart away back both each either neither enough even every everywhere few fewer fairly first further furthermore
hence here hereby herein how however indeed instead just last later latter least less lots many maybe meanwhile more moreover
most mostly much namely nearly nevertheless next nonetheless nowhere now once only other others otherwise own perhaps
possibly probably quite rather really same second several similarly some somehow somewhat somewhere soon still such there
thereafter thereby therefore therein thus together too twice very well when whence whenever where whereby wherein wherever
why all another away etc eg ie vs okay ok please
"""
_VERBS = """
say says said saying make makes made making take takes took taken taking come comes came coming see sees saw seen seeing
know knows knew known think thinks thought use uses used using want wants wanted give gives given gave seem seems seemed
seeming become becomes became becoming keep keeps kept put puts try tries tried tell tells told look looks looked
"""

ENGLISH = frozenset(" ".join((_PRONOUNS, _JOINTS, _AUXILIARIES, _CONTRACTIONS, _ADVERBS, _VERBS)).split())


_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u309f"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_SOUTH_EAST = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"  # Thai, Lao, Burmese, Khmer
_WHOLE_HAN, _WHOLE_SOUTH_EAST = 4, 12  # characters of the longest run that is one word
SHORTEST = 2  # characters of a word in these scripts, where words of others must be longer


def cut(pieces: list[str]) -> list[str]:
    """The pieces, where those with letters of these scripts are cut into words; hashtags and names stay whole."""
    search = _unspaced_letters().search
    return [
        w for piece in pieces for w in (_words_within(piece) if piece[:1] not in ("#", "@") and search(piece) else (piece,))
    ]


def has_unspaced(text: str) -> bool:
    """Whether the text has a letter of these scripts."""
    return _unspaced_letters().search(text) is not None


def runs_within(piece: str) -> list[str]:
    """The words that a piece gives in the midst of a longer run of such letters; the piece itself if it has none of them."""
    return _words_within(piece, whole=False) if has_unspaced(piece) else [piece]


def _words_within(piece: str, *, whole: bool = True) -> list[str]:
    """Chinese letters and hiragana in twos, a run of katakana whole, South East Asian letters in threes with their marks."""
    found: list[str] = []
    for part in _parts().finditer(piece):
        if part.lastgroup == "han":
            found += _overlapping(list(part.group()), 2, _WHOLE_HAN * whole)
        elif part.lastgroup == "south_east":
            short = whole and len(part.group()) <= _WHOLE_SOUTH_EAST
            found += _overlapping(_syllable_parts().findall(part.group()), 3, len(part.group()) * short)
        else:
            found.append(part.group())
    return found


def _overlapping(letters: list[str], several: int, whole: int) -> list[str]:
    if len(letters) <= max(whole, several):
        return ["".join(letters)]
    return ["".join(letters[first : first + several]) for first in range(len(letters) - several + 1)]


@functools.cache
def combining_marks() -> str:
    """All combining marks and joiners, as the inside of a character class."""
    marks = [c for c in range(0x300, min(sys.maxunicode, 0x1FFFF)) if unicodedata.category(chr(c)).startswith("M")]
    starts = [c for c in marks if unicodedata.category(chr(c - 1))[0] != "M"]
    ends = [c for c in marks if unicodedata.category(chr(c + 1))[0] != "M"]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(starts, ends, strict=True)) + "\u200c\u200d"


@functools.cache
def _unspaced_letters() -> re.Pattern[str]:
    return re.compile(f"[{_HAN}{_HIRAGANA}{_KATAKANA}{_SOUTH_EAST}]")


@functools.cache
def _parts() -> re.Pattern[str]:
    every = _HAN + _HIRAGANA + _KATAKANA + _SOUTH_EAST
    kinds = f"(?P<han>[{_HAN}{_HIRAGANA}]+)|(?P<katakana>[{_KATAKANA}]+)|(?P<south_east>[{_SOUTH_EAST}]+)"
    return re.compile(f"{kinds}|(?P<other>[^{every}]+)")


@functools.cache
def _syllable_parts() -> re.Pattern[str]:
    """A letter with the marks above, below and behind it."""
    return re.compile(f".[{combining_marks()}]*")


Tokenised = Sequence[str] | Sequence[Sequence[str]]  # words, or sentences of words
BREAK = ""  # the piece, and the word, that ends a sentence

# A full stop ends a sentence before white space, but not after a single letter (U.S., e.g., J. Smith) or a title. The first two
# lookarounds keep the search linear: a run of stops is tried at its first character only.
_STOPS = ".!?…。！？｡।"
_SENTENCE_END = (
    rf"(?=[{_STOPS}\n])(?:(?<![{_STOPS}])(?:"
    r"(?:[!?…。！？｡।]++|(?<![^\W\d_])\.++|(?<=[^\W_]{2})(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bvs)(?<!\bcf)\.++)"
    rf"[{_STOPS}]*+[\"'”’»)\]]*+(?=\s|\Z)|[。！？｡।]++)|\n[^\S\n]*+\n)"
)


LONGEST = 1_000_000  # words of a document, where nobody says otherwise
MOST = 2**31 - 1  # words of a document that can be counted: counts are held in 32 bits


ENGLISH_LIST, NO_LIST = "english", "none"
KEPT, DROPPED = "kept", "dropped"
WORDS, WHOLE = "words", "whole"
LATER: Mapping[str, tuple[str, ...]] = {  # settings that older plans and models do not have: what each may be, as there first
    "markup": (KEPT, DROPPED),
    "hashtags": (WORDS, WHOLE, NO_LIST),
    "names": (WORDS, WHOLE, NO_LIST),
    "quotes": (KEPT, DROPPED),
}
RECOMMENDED: Mapping[str, Any] = {
    "markup": DROPPED,
    "quotes": DROPPED,
}  # where nobody says otherwise: a run, and texts that are given


def without_usual(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without the later ones that are as they were before there were any: hashes and files stay the same."""
    return {name: value for name, value in settings.items() if name not in LATER or value != LATER[name][0]}


def is_named(stop_words: str) -> bool:
    """Whether a list of stop words has this name: none, or a language."""
    return stop_words == NO_LIST or language_code(stop_words) is not None


def stop_words_of(language: str) -> frozenset[str]:
    """The stop words of a language: securetm's own list of English, and the most frequent words of another one."""
    code = language_code(language)
    assert code is not None  # as `is_named` says
    return ENGLISH if code == ENGLISH_CODE else function_words(code)


def check_longest(where: str, longest: int) -> None:
    """Refuses a limit beyond what can be counted."""
    if not 1 <= longest <= MOST:
        raise BadSetting(where, "longest", f"{longest:,}", f"must lie between 1 and {MOST:,}")


@dataclass(frozen=True)
class Tokeniser:
    """How texts become words. Two parties with equal tokenisers turn equal texts into equal words.

    `stop_words` is "none", a language by its name or code, a tuple of words, or the path of a file with one word a line.
    `ngrams = 2` adds pairs of neighbouring kept words, joined by "_", within a sentence. Words of scripts without spaces
    between words may have two characters. `markup = "dropped"` decodes entities of HTML, and leaves out tags and links.
    `quotes = "dropped"` leaves out what mails and posts quote of earlier ones. Of `hashtags` and `names` (#big_data, @anna) the
    "words" are kept, the "whole", or "none". `pattern` replaces the rule that finds words. `words` replaces everything: your
    own function from a text to a list of words, or to a list of sentences of words, which stay as they are.
    """

    lower: bool = True
    stop_words: str | tuple[str, ...] | Path = ENGLISH_LIST
    min_length: int = 3
    max_length: int = 40
    numbers: bool = False  # keep words that begin with a digit
    ngrams: int = 1
    pattern: str | None = None
    longest: int = LONGEST  # words of the longest document; a longer one is refused when it is read
    words: Callable[[str], Tokenised] | None = None
    markup: str = KEPT
    hashtags: str = WORDS
    names: str = WORDS
    quotes: str = KEPT

    def __post_init__(self) -> None:
        if not 1 <= self.ngrams <= 5:
            raise BadSetting("Tokeniser", "ngrams", str(self.ngrams), "must lie between 1 and 5")
        if not 1 <= self.min_length <= self.max_length:
            raise BadSetting("Tokeniser", "min_length", str(self.min_length), f"must lie between 1 and {self.max_length}")
        if isinstance(self.stop_words, str) and not is_named(self.stop_words):
            raise BadSetting(
                "Tokeniser",
                "stop_words",
                repr(self.stop_words),
                'must be a language ("english", "sl"), "none", a tuple or a Path',
            )
        for name, allowed in LATER.items():
            if (value := getattr(self, name)) not in allowed:
                raise BadSetting("Tokeniser", name, repr(value), known=allowed)
        check_longest("Tokeniser", self.longest)
        if self.pattern is not None:
            _compiled(self.pattern)

    def settings(self) -> dict[str, Any] | None:
        """These settings ready for JSON, words of a file as words; None where a function of the user's own finds the words."""
        if self.words is not None:
            return None
        found = {setting.name: getattr(self, setting.name) for setting in fields(self) if setting.name != "words"}
        found = without_usual(found)
        named = self.stop_words in (ENGLISH_LIST, NO_LIST)
        return found if named else {**found, "stop_words": sorted(self._stopped)}

    @classmethod
    def of_settings(cls, found: Mapping[str, Any]) -> Self:
        """The tokeniser of such settings."""
        stop_words = found["stop_words"]
        return cls(**{**found, "stop_words": stop_words if isinstance(stop_words, str) else tuple(map(str, stop_words))})

    def sentences(self, text: str) -> list[list[str]]:
        """The words of a text, sentence by sentence; sentences without a kept word are left out."""
        sentences: list[list[str]] = [[]]
        for piece in self.pieces(text):
            word = self.word(piece)
            if word == BREAK:
                sentences.append([])
            elif word is not None:
                sentences[-1].append(word)
        return [with_ngrams(sentence, self.ngrams) for sentence in sentences if sentence]

    def pieces(self, text: str) -> list[str]:
        """The raw words of a text with a BREAK after each sentence. `word` normalises or drops each."""
        if self.words is not None:
            parts = [[item] if isinstance(item, str) else [*item, BREAK] for item in self.words(text)]
            return [word for part in parts for word in part]
        text = self._cleaned(text)
        if self.pattern is None:
            signs = "#" * (self.hashtags == WHOLE) + "@" * (self.names == WHOLE)
            if text.isascii():
                return _ascii_pattern(signs).findall(text)
            found: list[str] = _own_pattern(signs).findall(text)
            return cut(found) if has_unspaced(text) else found
        find = _compiled(self.pattern).findall
        return [piece for sentence in _sentence_end().split(text) for piece in (*find(sentence), BREAK)]

    def _cleaned(self, text: str) -> str:
        """The text without what this tokeniser takes for no words."""
        if DROPPED in (self.markup, self.quotes):
            text = cleaned(text, markup=self.markup == DROPPED, quotes=self.quotes == DROPPED)
        text = without_hashtags(text) if self.hashtags == NO_LIST else text
        return without_names(text) if self.names == NO_LIST else text

    def word(self, piece: str) -> str | None:
        """The word that a raw word is counted as: None if it is dropped, BREAK at the end of a sentence."""
        if piece == BREAK or self.words is not None:
            return piece
        word = unicodedata.normalize("NFKC", piece).replace("’", "'")
        word = word.lower() if self.lower else word
        if word.lower() in self._stopped:
            return None
        word = word.removesuffix("'s").removesuffix("'S")
        return word if self._is_kept(word) else None

    def _is_kept(self, word: str) -> bool:
        bare = word.lstrip("#@") if word[:1] in ("#", "@") else word
        unspaced = has_unspaced(bare[:1])
        least = min(self.min_length, SHORTEST) if unspaced else self.min_length
        if not bare or not least <= len(word) <= self.max_length or word.lower() in self._stopped:
            return False
        return self.pattern is not None or self.numbers or unspaced or not bare[0].isnumeric()

    @functools.cached_property
    def _stopped(self) -> frozenset[str]:
        if self.stop_words == NO_LIST:
            return frozenset()
        if isinstance(self.stop_words, str):
            return stop_words_of(self.stop_words)
        listed = _words_in(self.stop_words) if isinstance(self.stop_words, Path) else self.stop_words
        return frozenset(unicodedata.normalize("NFKC", word).replace("’", "'").lower() for word in listed)


def with_ngrams(words: list[str], longest: int) -> list[str]:
    """The words, each followed by the runs of two, three, ... words that end in it."""
    if longest == 1:
        return words
    runs = range(1, longest + 1)
    return ["_".join(words[end - n : end]) for end in range(1, len(words) + 1) for n in runs if n <= end]


def prune(corpus: Any, min_df: float = 1, max_df: float = 1.0, max_words: int | None = None) -> tuple[str, ...]:
    """The words that occur in enough and not too many documents, at most `max_words` of them, in alphabetical order.

    Whole numbers count documents, fractions (1.0 too) are shares of all documents. The most frequent words (ties: by the
    alphabet) stay. The result depends on the documents: under differential privacy it is not free.
    """
    frequencies: Array = corpus.document_frequencies()
    words = np.asarray(corpus.vocabulary, dtype=object)
    enough = _counted(frequencies, min_df, len(corpus), "min_df") >= min_df
    few_enough = _counted(frequencies, max_df, len(corpus), "max_df") <= max_df
    fit = np.flatnonzero((frequencies >= 1) & enough & few_enough)
    if max_words is not None and len(fit) > max_words:
        ranked = sorted(fit, key=lambda i: (-frequencies[i], words[i]))
        fit = np.asarray(ranked[:max_words], dtype=np.int64)
    return tuple(sorted(words[fit]))


def _counted(frequencies: Array, limit: float, documents: int, name: str) -> Array:
    """Numbers of documents as this limit counts them: a whole number as they are, a fraction as shares of all.

    A share of 29 in 100 is 0.29 exactly, which 0.29 times 100 as a float misses.
    """
    if isinstance(limit, int):
        if limit < 0:
            raise BadSetting("prune", name, str(limit), "must not be negative")
        return frequencies
    if not 0.0 <= limit <= 1.0:
        raise BadSetting("prune", name, str(limit), "must be a whole number of documents or a share between 0.0 and 1.0")
    return frequencies / max(documents, 1)


def _words_in(path: Path) -> list[str]:
    if not path.is_file():
        raise NoSuchPath(str(path))
    try:
        return path.read_text("utf-8-sig").split()
    except UnicodeDecodeError as fault:
        raise wrong_encoding(str(path), fault.object.count(b"\n", 0, fault.start) + 1) from fault


@functools.cache
def _own_pattern(signs: str = "") -> re.Pattern[str]:
    """A word is a run of letters and digits, with the marks that belong to them and with apostrophes inside.

    Python's \\w leaves out combining marks, without which words of India's scripts and many others would be cut.
    """
    word = rf"[^\W_]+(?:[{combining_marks()}]+[^\W_]*)*(?:['’][^\W\d_]+)*"
    letter = rf"[\w{combining_marks()}]"
    return re.compile(rf"({_signed(signs, letter)}{word})|(?:{_SENTENCE_END})")


def _signed(signs: str, letter: str) -> str:
    """Before the rule of words, that of words behind these signs: they are whole with _ and -, and names with dots inside."""
    hashtag = rf"{BEFORE_HASHTAG}(?=_*[^\W_]){letter}+(?:-{letter}+)*|" if "#" in signs else ""
    return hashtag + (rf"{BEFORE_NAME}(?=_*[^\W_]){letter}+(?:[.-]{letter}+)*|" if "@" in signs else "")


@functools.cache
def _ascii_pattern(signs: str = "") -> re.Pattern[str]:
    """The same rule for texts in ASCII: it finds the same words three times faster."""
    return re.compile(rf"({_signed(signs, '[A-Za-z0-9_]')}[A-Za-z0-9]+(?:'[A-Za-z]+)*)|(?:{_SENTENCE_END})")


@functools.cache
def _sentence_end() -> re.Pattern[str]:
    return re.compile(_SENTENCE_END)


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as fault:
        raise BadSetting("Tokeniser", "pattern", repr(pattern), f"is not a regular expression: {fault}") from fault
    if compiled.groups > 1:
        raise BadSetting("Tokeniser", "pattern", repr(pattern), "has more than one group; use (?:...) for the others")
    return compiled
