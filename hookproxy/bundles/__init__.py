"""Signed policies for many machines: fetched, verified, tried and taken as a whole, or not at all.

A bundle is a folder of files and one signed `manifest` with the hash of each of them. `sources` and its neighbours
fetch it, `archive` unpacks it strictly, `manifest` decides whether it may be taken, `store` keeps those that were, and
`update` is the way from the first to the last; `make` makes one. What it promises: nothing of a bundle is used that is
not in a manifest which one of the administrator's keys, or a key that these have named, has signed for this ring. It
knows no configuration: what a policy says, and whether it works, is asked of the caller.
"""
