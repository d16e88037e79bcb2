"""Audit plans and attacks on the transcript of a real run. No attack re-implements what it attacks."""
