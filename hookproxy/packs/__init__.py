"""Packs: hooks, rules and tests of somebody else, with a manifest that says what they are and what they need.

`manifest` decides whether the files of a pack may be used, `folder` reads them from a folder or an archive and writes
their manifest, `store` keeps those that are installed, and `environment` installs the packages that their hooks need.
What it promises: no file of a pack is used that its manifest does not name with its hash, a version never goes down by
itself, and where keys are configured, nothing counts that none of them has signed. It knows no configuration: what a
pack's rules are, and what it may contain, is `config/pack_layer`'s subject.
"""
