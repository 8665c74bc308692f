"""Archives that anybody may have made: tar files of plain files with harmless names, read strictly, and written.

What it promises: what is read has no links and no devices, is no larger than a limit, and has names that every file
system takes for the same files, below one folder. It knows no manifests and no signatures: `bundles` and `packs` do.
"""
