"""The language model that hooks of type `prompt` and `agent` ask, and what such a hook asks. Frozen values.

There is no key in them: a source says where it is.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from .secret_settings import Source

_SUMMARY_LENGTH: Final = 200  # characters, in which people recognise it


class ModelEndpoint(Struct, frozen=True):
    """The table `[model]`."""

    api: Literal["openai", "anthropic"]
    url: str
    """The address that the paths of the interface follow, without a slash at its end."""
    name: str
    """The model of hooks that name none."""
    key: Source | None = None
    """Where the key is; None: the endpoint needs none."""
    aliases: tuple[tuple[str, str], ...] = ()
    """Names of models that hooks use, each with the endpoint's. Pairs, so that hooks can be compared by hash."""

    def model(self, name: str) -> str:
        """The endpoint's name of the model that a hook calls so; empty: it names none."""
        return dict(self.aliases).get(name, name) or self.name


class ModelHook(Struct, frozen=True):
    """What a hook asks a model."""

    prompt: str
    """As written: `$ARGUMENTS` stands for the document."""
    endpoint: ModelEndpoint
    model: str
    """The model, by the endpoint's name of it."""
    takes_context: bool = False
    """The model may answer with `additionalContext`, too."""

    @property
    def summary(self) -> str:
        """The beginning of the prompt on one line, for people: each record of a call has it."""
        text = " ".join(self.prompt.split())
        return text if len(text) <= _SUMMARY_LENGTH else f"{text[: _SUMMARY_LENGTH - 1]}…"
