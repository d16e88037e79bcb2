"""What earlier versions wrote: `version-3.tar.xz` is a federation of five after a run, with protocol 3 and roster form 1.

It was made by processes of that version, over TLS: keys, rosters, homes, ledgers, a coordinator's run. All texts are invented.
"""
