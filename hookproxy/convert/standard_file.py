"""The hooks of a standard that a hookproxy.toml has, for converting them: `convert FILE --from STANDARD`.

Law 3: whatever else the file has, and whatever such a hook loses outside of hookproxy, is in the notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..config.hook_files import LoadedHookFile, is_own_configuration
from ..config.load import read_layer
from ..dialects import interceptors
from ..dialects.agent_hooks_verdicts import EVALUATE_ONLY
from ..dialects.dialect import Group
from ..dialects.registry import hook_system
from ..model.errors import UserError
from ..trust.sources import FileContext


def read_standard(standard: str, path: str, file_context: FileContext, *, served: bool = False) -> list[LoadedHookFile]:
    """The hooks of this standard in the file, which is read as `--config` reads it. Raises UserError.

    `served`: hookproxy itself runs them, with all that the file has.
    """
    if not is_own_configuration(path):
        hint = "name a hookproxy.toml, or another system after --from"
        raise UserError(f"{path}: hooks of {standard} are in a hookproxy.toml, and this is another file", hint)
    groups = read_layer(path, file_context).groups
    own = [group for group in groups if group.dialect.name == standard and not group.watched]
    notes: list[str] = []
    if any(group.hooks for group in groups if group not in own):
        others = "take part, too" if served else "are left out"
        notes.append(f"{path}: hooks that are not of {standard}, or only watched, {others}")
    if not served:
        if standard == interceptors.INTERCEPTORS.name and any(group.hooks for group in own):
            notes.append(f"{path}: interceptors judge calls of tools only: agents have no hooks for other messages")
        notes += _losses(own, standard)
        own = [_deciding(group) for group in own]
    of_first = tuple(notes)
    return [LoadedHookFile(group, path, () if number else of_first) for number, group in enumerate(own)]


def _deciding(group: Group) -> Group:
    """The group without hooks that decide nothing: in an agent they would."""
    return replace(group, hooks=tuple(spec for spec in group.hooks if EVALUATE_ONLY not in spec.traits))


def _losses(groups: Sequence[Group], standard: str) -> Iterator[str]:
    for group in groups:
        kept = _deciding(group).hooks
        for spec in group.hooks:
            if spec not in kept:
                yield f"{spec.source} is left out: it is {EVALUATE_ONLY}, and in an agent it would decide"
        if group.dialect != hook_system(standard):
            yield f"{group.source}: hooks.composition is left out: the hooks run one after another, and all of them"
