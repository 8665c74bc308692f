"""Installs a pack for `init --from`, and takes a newer version for `pack update`.

Whatever would run is shown first, and runs only with `--install`: Python's venv and pip, in a folder of the pack's own
below the user's data folder. Nothing counts before all of it is there, and has been loaded once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..archives.listed import Refused
from ..checks import commands
from ..checks.report import ConfiguredHook
from ..config.load import Loaded, find_own_file, load_by, managed_layers, read_layer
from ..config.pack_layer import FOLDER, keys_in_force, read_pack
from ..config.pack_manifest import explained
from ..model.errors import ConfigError, UserError, not_installed
from ..model.hooks import HookSpec
from ..packs import environment, make
from ..packs.manifest import MANIFEST, TESTS, InvalidManifest, Pack, check_successor, number, verify
from ..packs.store import ENVIRONMENTS, Installed, Store
from ..signing.keys import EXTRA, PublicKey
from ..trust.sources import FileContext, Layer, data_folder
from .common import tell
from .layout import Page, label

_MOST_SHOWN = 12  # hooks, rules or packages: the rest is counted


class Machine(Struct, frozen=True):
    """What this user has installed, and whose signatures count."""

    files: FileContext
    store: Store
    keys: list[PublicKey] | None

    def verified(self, source: str) -> Pack:
        """The pack in a folder or an archive. Raises UserError if it must not be used."""
        files, _executable = make.read_source(source)
        try:
            pack = verify(files, self.keys)
        except InvalidManifest as problem:
            raise explained(os.path.join(source, MANIFEST), problem) from None
        except Refused as problem:
            raise UserError(f"{source}: {problem}", "nothing was installed; hookproxy pack verify shows more") from None
        except ModuleNotFoundError:
            raise not_installed("a signed pack", "cryptography", EXTRA) from None
        _check_version(pack)
        return pack


def machine(cwd: str) -> Machine:
    """This user's packs. Raises UserError."""
    files = FileContext(os.environ, cwd)
    managed = [layer.packs for layer in managed_layers(os.environ) if layer.packs is not None]
    own_file = find_own_file(files)
    own = read_layer(own_file, files).packs if own_file else None
    folder = os.path.join(data_folder(files.environ, files.home), FOLDER)
    return Machine(files, Store(folder), keys_in_force(own, managed))


def _check_version(pack: Pack) -> None:
    from .. import __version__

    ours = __version__.split("+")[0]
    digits = ".".join(part for part in ours.split(".") if part.isdecimal())
    if number(pack.manifest.needs.hookproxy) > number(digits):
        raise UserError(
            f"{pack.name} {pack.version} needs hookproxy {pack.manifest.needs.hookproxy}, and this is {ours}",
            "install that version of hookproxy first; nothing was installed",
        )


class Candidate(Struct, frozen=True):
    """A version that is to be installed."""

    pack: Pack
    source: str
    """An absolute path."""
    plan: environment.Plan | None

    @property
    def environment(self) -> str:
        """The folder of its environment; empty: it needs none."""
        return "" if self.plan is None else self.plan.folder

    @property
    def has_cases(self) -> bool:
        """Whether it comes with tests."""
        return any(name.startswith(TESTS) for name in self.pack.manifest.files)

    @property
    def runs(self) -> bool:
        """Whether something must run for it."""
        return self.plan is not None and not self.plan.is_made


def candidate(here: Machine, source: str) -> Candidate:
    """The pack at this path, and what must run for it. Raises UserError."""
    path = here.files.find(source, here.files.cwd)
    pack = here.verified(path)
    folder = here.store.place(pack.name, ENVIRONMENTS)
    return Candidate(pack, path, environment.plan(pack.manifest.needs, folder, os.environ))


def describe(page: Page, here: Machine, new: Candidate, *, is_verbose: bool) -> None:
    """Add what a pack is, says and needs, without installing anything; `is_verbose`: all of it. Raises UserError for
    what it must not say."""
    most = None if is_verbose else _MOST_SHOWN
    pack = new.pack
    page.line((f"{pack.name} {pack.version}", "bold"), f": {pack.manifest.description}")
    page.row(label("from"), new.source)
    page.row(label("signed"), _signature(pack, here.keys))
    layer, _problems = read_in_copy(pack, here.files)
    check_python(pack, layer)
    specs = [spec for group in layer.groups for spec in group.hooks]
    for text in _first([_hook(spec) for spec in specs], "hooks", most):
        page.row(label("hook"), text)
    rules = layer.settings
    for decision, texts in (("deny", rules.deny), ("ask", rules.ask), ("allow", rules.allow)):
        if texts:
            page.row(label(decision), ", ".join(_first(texts, "rules", most)))
    if rules.default_permission != "allow":
        page.row(label("default"), f"{rules.default_permission}, whatever else allows the rest")
    for limit in layer.settings.limits:
        page.row(label("limit"), limit.summary)
    _describe_needs(page, new, most)


def _describe_needs(page: Page, new: Candidate, most: int | None) -> None:
    needs = new.pack.manifest.needs
    for program in needs.programs:
        if shutil.which(program) is None:
            page.row(label("missing"), f"{program}: hooks that start it fail", "yellow")
    if new.plan is not None:
        page.row(label("needs"), ", ".join((f"Python {needs.python}", *_first(needs.packages, "packages", most))))
        for command in () if new.plan.is_made else new.plan.shown:
            page.row(label("runs"), command)


def _signature(pack: Pack, keys: Sequence[PublicKey] | None) -> str:
    if pack.signed_by is None:
        return "no: whoever could change the files could change the pack"
    key = " ".join(filter(None, (pack.signed_by.fingerprint, pack.signed_by.comment)))
    return f"by {key}" + ("" if keys is not None else ", a key that no [packs] keys names")


def _hook(spec: HookSpec) -> str:
    return f"{spec.event} {spec.matcher or '*'}: {spec.target}"


def _first(texts: Sequence[str], what: str, most: int | None) -> Iterator[str]:
    yield from texts[:most]
    if most is not None and len(texts) > most:
        yield f"and {len(texts) - most} more {what}: --verbose shows all"


def read_in_copy(pack: Pack, files: FileContext) -> tuple[Layer, list[str]]:
    """What the pack says, and its `hook_problems`, read from a copy that nobody else sees. Raises UserError for what a
    pack must not say."""
    with tempfile.TemporaryDirectory(prefix="hookproxy-") as folder:
        for name, content in pack.files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        try:
            layer = read_pack(folder, "", files, read_layer)
            return layer, [problem.replace(os.path.join(folder, ""), "") for problem in hook_problems(layer)]
        except ConfigError as problem:
            raise UserError(problem.message.replace(os.path.join(folder, ""), ""), problem.hint) from None


def check_python(pack: Pack, layer: Layer) -> None:
    """Raise UserError if hooks of the pack would run without the packages that they need."""
    if pack.manifest.needs.packages and any(spec.type == "python" for g in layer.groups for spec in g.hooks):
        raise UserError(
            f"{pack.name} needs packages for a Python function, which would run in hookproxy's process without them",
            'whoever makes the pack must write it as a program: argv = ["python3", "FILE"], or type = "worker"',
        )


def hook_problems(layer: Layer) -> list[str]:
    """One sentence for each program or file of a hook that is not there; programs may come with the environment."""
    return [
        f"{spec.source}: {problem}"
        for group in layer.groups
        for spec in group.hooks
        for problem in commands.problems(ConfiguredHook(spec, group, layer.settings, os.environ))
    ]


def check_new(here: Machine, pack: Pack) -> Installed | None:
    """What is installed of this pack, which must be the same version or nothing. Raises UserError, also for one that is
    older than what was installed before the pack was removed.
    """
    state = here.store.installed(pack.name)
    if state is not None and state.digest != pack.digest:
        raise UserError(
            f"{pack.name} {state.version} is installed already",
            f"hookproxy pack update {pack.name} --from PACK shows what another version would change, and takes it",
        )
    if state is None and (memory := here.store.memory(pack.name)) is not None:
        try:
            check_successor(pack, memory, here.keys)
        except Refused as problem:
            hint = f"nothing was installed; if it is to be taken: hookproxy pack remove {pack.name} --forget"
            raise UserError(f"{pack.name}: {problem}", hint) from None
    return state


def install(here: Machine, new: Candidate) -> None:
    """Install a pack that is not there yet, or put back what it lacks. Raises UserError; then nothing counts."""
    with here.store.locked(new.pack.name):
        state = check_new(here, new.pack)
        try:
            put(here, new, here.files.cwd)
            if state is None or state.environment != (new.plan.key if new.plan else ""):
                take(here, new)
        except BaseException:
            here.store.forget(new.pack)
            raise


def put(here: Machine, new: Candidate, cwd: str, config: str | None = None) -> Loaded:
    """Write the files and the environment of a version, and load it as a run would. Raises UserError."""
    if new.plan is not None:
        if not new.plan.is_made:
            tell(f"making the environment of {new.pack.name}, which takes some ten seconds …")
        environment.make(new.plan, os.environ)
    folder = here.store.write_files(new.pack)
    loaded = loaded_with(new.pack.name, folder, new.environment, cwd, config)
    for group in loaded.groups:
        for spec in group.hooks if group.source.startswith(os.path.join(folder, "")) else ():
            for problem in commands.problems(ConfiguredHook(spec, group, loaded.settings, os.environ)):
                raise ConfigError(spec.source, problem, "whoever makes the pack must correct it; nothing was installed")
    return loaded


def loaded_with(name: str, folder: str, needed: str, cwd: str, config: str | None = None) -> Loaded:
    """The whole configuration with the pack in this folder, and its environment. Raises UserError."""
    return load_by(FileContext(os.environ, cwd, pack_folders={name: (folder, needed)}), config)


def take(here: Machine, new: Candidate) -> None:
    """From now on this version counts. Raises UserError."""
    here.store.make_current(new.pack, new.source, new.plan.key if new.plan is not None else "")


def changed_files(before: Pack, after: Pack) -> list[str]:
    """The files that differ, each with +, - or ~."""
    old, new = before.manifest.files, after.manifest.files
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return [f"{'+' if name not in old else '-' if name not in new else '~'} {name}" for name in names]
