"""Figures of topics and of topic weights, from any model or from a file: what `securetm evaluate` shows.

Whoever calls has the documents: nothing here answers a question of a federation. Those figures are in `models/quality.py`.
"""
