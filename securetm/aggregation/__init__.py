"""What changes who sees a sum. Sans-I/O: bytes in, bytes out.

An aggregation of another package is found through its entry point in the group `securetm.aggregations`.
"""

from securetm.registries import Registry

AGGREGATIONS = Registry(
    "aggregation",
    "securetm.aggregations",
    "securetm.contracts:Aggregation",
    {
        "bfv": "securetm.aggregation.homomorphic.bfv:BfvSum",
        "ckks": "securetm.aggregation.homomorphic.ckks:CkksSum",
        "masked": "securetm.aggregation.masked.masked_sum:MaskedSum",
        "plain": "securetm.aggregation.plain:PlainSum",
    },
)
