"""`hookproxy init --from PACK`: shows a pack, and installs it with `--install`; hookproxy.toml then names it."""

from __future__ import annotations

import shlex
from argparse import Namespace
from typing import Final

from ..model.errors import UserError
from .common import show, working_directory
from .layout import new_page, shortened
from .merged_config import config_option, planned, shown, write_change
from .own_file import CONFIG, schema_directive
from .pack_install import candidate, check_new, describe, install, machine

_LINES_OF_NEXT: Final = 5  # what was installed, and what to do next


def main(folder: str, options: Namespace) -> int:
    """Show a pack, and install it if that is asked for. Returns the exit status. Raises UserError."""
    if options.starter is not None or options.fail_closed:
        raise UserError("--from is for a pack alone", "leave out NAME and --fail-closed")
    with shortened(verbose=options.verbose, end=_LINES_OF_NEXT if options.install else 1):
        return _take(folder, options)


def _take(folder: str, options: Namespace) -> int:
    here = machine(working_directory())
    new = candidate(here, options.source)
    page = new_page()
    describe(page, here, new, is_verbose=options.verbose)
    show(page.text)
    check_new(here, new.pack)
    text = f'[packs]\nuse = ["{new.pack.name}"]\n'
    change = planned(folder, text, new.pack.name)
    if not options.install:
        show("nothing was installed: the same with --install does all of this\n")
        return 0
    install(here, new)
    write_change(folder, change, schema_directive() + "\n" + text)
    config = shown(folder, options, CONFIG)
    show(f"installed {new.pack.name} {new.pack.version}\n")
    show(f"{'added to' if change is None or change.merged.added else 'as it is:'} {config}\n\n")
    show(f"next: hookproxy check{config_option(config, options)}\n")
    if new.has_cases:
        installed = here.store.files(new.pack.name, new.pack.version, new.pack.digest)
        show(f"then: hookproxy test {shlex.quote(installed)}{config_option(config, options)}\n")
    return 0
