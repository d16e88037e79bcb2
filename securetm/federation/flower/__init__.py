"""Flower as the carrier of a federation's messages: an extra for organisations that run SuperLink and SuperNodes already."""
