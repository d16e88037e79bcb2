"""Errors of models: not fitted, not fitting the documents, damaged files, and words and topics that cannot be used."""

from __future__ import annotations

from securetm.errors import Misuse, Refused, SecuretmError, Unsound


class NotTopics(Misuse):
    """the topics of {whose} cannot be matched: {problem}"""

    whose: str
    problem: str
    hint = "give a table of topics x words of the same vocabulary, whose entries are finite and not negative"


class NotFitted(Misuse, ValueError, AttributeError):
    """this {model} has not learned anything yet"""

    model: str
    hint = "call fit(documents) first, or {model}.load(path)"


class OtherVocabulary(Misuse, ValueError):
    """the documents have {found} words where the model's vocabulary has {known}, or others, or in another order"""

    found: int
    known: int
    hint = "count the documents over the model's own vocabulary, for example with corpus.project(model.learned.vocabulary)"


class NoMatrix(Misuse, ValueError):
    """the documents are neither a corpus, nor texts, nor a matrix of counts with a column for each word, but {found}"""

    found: str
    hint = "give a list of texts, a corpus (securetm.Corpus.from_strings, securetm.read_corpus), or counts: documents x words"


class DamagedModel(SecuretmError):
    """{path} cannot be read as a model: {problem}"""

    path: str
    problem: str
    hint = "save the model again; only files written by save() can be loaded"


class NewerModel(SecuretmError):
    """{path} is a model file of version {found}, this securetm reads version {known}"""

    path: str
    found: str
    known: str
    hint = "load it with the securetm that wrote it, or a newer one"


class OtherModel(Misuse):
    """{path} holds a {found}, not a {wanted}"""

    path: str
    found: str
    wanted: str
    hint = "load it with securetm.load(path), which loads every model, or with the class that saved it"


class UnknownModel(SecuretmError):
    """{path} holds a model called {found!r}, which this securetm does not have"""

    path: str
    found: str
    known: tuple[str, ...]
    hint = "load it with the securetm that wrote it, or a newer one; this one has {known}"


class NoKnownWords(UserWarning):
    """Some documents have no word of the model's vocabulary, so their topic shares are those of any document."""


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


class NoSuchDevice(SecuretmError):
    """the model is to be trained on device = {device}, and torch finds none here"""

    device: str
    hint = 'leave device = "auto", which takes a GPU where there is one and the CPU elsewhere, or say "cpu"'


class BadWordList(Refused):
    """the list of words from {party} {problem}"""

    party: str
    problem: str
    hint = "the party runs another version, or is not honest; leave it out or correct its software"


class TooManyPairs(SecuretmError):
    """the model moments counts every pair of words, and {words:,} words are more than the {most:,} that it takes"""

    words: int
    most: int
    hint = "keep fewer words (vocabulary.max_words), or take lda-vi, which counts words in topics"


class NoWordToLearn(SecuretmError):
    """the documents have no word at all, so there is nothing to learn from them"""

    hint = "is it the right column or list of words? do the tokeniser's settings fit the language (min_length, pattern)?"


class EmptyVocabulary(Misuse):
    """none of {words:word|words} is in enough and not too many documents (at least {min_df}, at most {max_df})"""

    words: int
    min_df: str
    max_df: str
    hint = (
        "take fewer documents for enough or more for too many: --set vocabulary.min_documents=1, --set vocabulary.max_share=1 "
        "(min_df and max_df in Python)"
    )


class NotAnswered(SecuretmError):
    """this question was not answered with a sum"""

    hint = "only the role that opens the sum can read it"


class NoSentences(Misuse, ValueError):
    """the documents are counts of words: where their sentences end is not known"""

    hint = (
        "read them from texts (Corpus.from_strings, read_corpus), or give tokens with sentence_ends; for bare counts take LDA"
    )


class OwnTokeniser(Misuse):
    """this model learned from texts whose words a function found, and no file holds that function"""

    hint = "read texts by it: Corpus.from_strings(texts, tokeniser=Tokeniser(words=...)).project(model.learned.vocabulary)"


class NoSums(Misuse):
    """this {model} does not hold the sums that it learned from, so no documents can be added to them"""

    model: str
    hint = "a model from a file holds topics only: fit a new one, or give all documents to partial_fit, a part at a time"


class NoEmbeddings(Misuse, ValueError):
    """the documents have no embeddings, and the model reads one of {size:number|numbers} beside each document's words"""

    size: int
    hint = (
        "name the column that holds them (--embedding COLUMN, or embeddings= in Corpus.from_strings), or give a matrix of "
        "counts with them as a pair, (counts, embeddings)"
    )


class OtherEmbeddings(Misuse, ValueError):
    """the documents' embeddings have {found:number|numbers} each where the model reads {size}"""

    found: int
    size: int
    hint = (
        "set the model's embedding_size to theirs (--set model.embedding_size={found}), or embed the documents as for the model"
    )


class NoTorchModule(Misuse):
    """the module {module!r} of a torch-module cannot be used: {problem}"""

    module: str
    problem: str
    hint = (
        "name a class that derives from securetm.TopicNetwork as package.module:Class (--set model.module=...), in a package "
        "that is installed here or whose folder is in PYTHONPATH"
    )


class OtherTorchModule(Misuse):
    """the source of {module!r} here has digest {found}, and the agreement says {agreed}"""

    module: str
    found: str
    agreed: str
    hint = "get the same version of the file as the others, or remove `source` from the plan to agree on another one"


class BrokenTorchModule(Misuse):
    """{module!r} does not do what a topic network must: {problem}"""

    module: str
    problem: str
    hint = "forward gives a loss per document (of one document too), topics and infer give no negative numbers"


class NotImported(Misuse):
    """{path} names {module!r}, and no file of a run or model makes securetm import code"""

    path: str
    module: str
    hint = (
        "if you trust that class: import its module before you load the file, name the class in the environment variable "
        "SECURETM_NETWORKS for commands, or declare it as an entry point in the group securetm.networks"
    )
