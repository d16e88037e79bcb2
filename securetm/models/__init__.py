"""The topic models in folders, and beside these what they share. They know neither privacy nor network.

A model of another package is found through its entry point in the group `securetm.models`.
"""

from securetm.registries import Registry

MODELS = Registry(
    "model",
    "securetm.models",
    "securetm.contracts:TopicModel",
    {
        "lda": "securetm.models.gibbs.lda:LDA",
        "lda-matched": "securetm.models.matching.matched:MatchedLDA",
        "lda-vi": "securetm.models.variational.lda_vi:VariationalLDA",
        "prodlda": "securetm.models.neural.prodlda:ProdLDA",
        "sentence-lda": "securetm.models.sentence.sentence_lda:SentenceLDA",
        "sentence-lda-matched": "securetm.models.matching.matched:MatchedSentenceLDA",
    },
    named=True,
)
