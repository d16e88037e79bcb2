"""The papers' tables and the project's measurements, reproducible by name: `python -m lab --help`.

It stands beside securetm, which never imports it, and uses its public face: names without an underscore of any module, but
none of `securetm.cli`.
"""
