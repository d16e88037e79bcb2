"""Errors of models that a role acts on by their type, or signals by their name."""

from __future__ import annotations

from securetm.errors import Misuse, Refused, SecuretmError, Unsound


class SketchTooSmall(SecuretmError):
    """the parties have more words together than the plan allows for ({left} cells could not be read)"""

    left: int
    hint = "raise vocabulary.most_candidates in the plan, or let every party leave out its rarest words"


class CouplesDocuments(Unsound):
    """in {where}, one document's part of the answer depends on the documents beside it: {kind}"""

    where: str
    kind: str
    hint = "normalise each document by itself (layer normalisation instead of batch normalisation): no clip bounds the others"


class EmbeddingsWithoutNoise(Unsound):
    """{model} reads embeddings, and the noise of {profile} is in single words: an embedding is made of the words without it"""

    model: str
    profile: str
    hint = "use a model that reads words alone, such as lda or prodlda, or a profile whose noise is in the sums"


class RowsDepend(Refused):
    """{model} cannot bound the part of one document in a sum here: {how}"""

    model: str
    how: str
    hint = 'train on a CPU (device = "cpu"), or on another processor; and please report the processor: nothing was spent'


class BadWordList(Refused):
    """the list of words from {party} {problem}"""

    party: str
    problem: str
    hint = "the party runs another version, or is not honest; leave it out or correct its software"


class EmptyVocabulary(Misuse):
    """none of {words:word|words} is in enough and not too many documents (at least {min_df}, at most {max_df})"""

    words: int
    min_df: str
    max_df: str
    hint = (
        "take fewer documents for enough or more for too many: --set vocabulary.min_documents=1, --set vocabulary.max_share=1 "
        "(min_df and max_df in Python)"
    )
