"""What `[secrets]` hides in one session: the values, their placeholders, and who may have a value in the place of one.

The server's messages are masked before anything reads them (`secrets_channel`), so hooks, records, consoles and logs
know placeholders only. What the agent or a hook writes itself is judged and sent as it is, and masked wherever it is
shown: that is what `masks` is for. Values come back in two places: in arguments for tools that `[[secrets.restore]]`
names, after all that judges them, and in the input of hooks that may see them.

With other runs of the same session (`SharedSecrets`), a placeholder that another run has made is looked up there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
from msgspec.structs import replace

from ..model.hooks import Document, Event, EventContext, HookResult, HookSpec, Verdict
from ..model.newest_entries import NewestEntries
from ..policy.globs import glob
from ..policy.shared_state import SharedSecrets, StoreUnavailable
from ..policy.tool_tables import is_about
from ..protocol.secret_masks import SecretMasks
from ..protocol.secret_restores import BEGINNING, ValueOf, placeholders_in, restored
from ..secrets.placeholders import MAX_VALUES, PLACEHOLDER, Placeholders
from ..secrets.seen_values import SeenValues
from ..secrets.session_finder import SessionFinder

if TYPE_CHECKING:
    from ..model.secret_settings import SecretSettings
    from ..secrets.finder import Finder
    from ..secrets.placeholders import Restored

_KEY_BYTES: Final = 32  # of HMAC-SHA-256
_MOST_UNPUBLISHED_BYTES: Final = 1024 * 1024  # of memory, while nobody keeps them: some hundreds
_SHARED_SECONDS: Final = 5.0  # for what other runs know: they are on the same machine, and answer in a millisecond


class HiddenSecrets:
    """The secrets of one session."""

    def __init__(
        self,
        settings: SecretSettings,
        finder: Finder,
        server: str,
        shared: SharedSecrets | None = None,
    ) -> None:
        """`server` is the server's name, as the tables of `settings` have it."""
        self._settings = settings
        self._server = server
        self._shared = shared
        self._noted: set[str] = set()  # the placeholders that other runs know, or will hear of
        self._unpublished: NewestEntries[str] = NewestEntries(_MOST_UNPUBLISHED_BYTES)
        self.has_news = False
        """Placeholders are to be reported to other runs."""
        self._rules_by_tool: dict[str, tuple[re.Pattern[str], ...]] = {}
        self._finder = SessionFinder(finder)
        self.masks = SecretMasks(self._finder, Placeholders(os.urandom(_KEY_BYTES)))
        self.is_ready = shared is None
        """Its placeholders are those of the session: nothing is masked before."""
        self.has_off = bool(settings.off)
        """Some tools' results are not looked at."""

    def use(self, settings: SecretSettings, finder: Finder) -> None:
        """Hide and restore by these settings from now on. Placeholders stand for what they stood for."""
        self._settings, self.has_off = settings, bool(settings.off)
        self._rules_by_tool.clear()
        self._finder.use(finder)

    async def prepare(self) -> None:
        """Get the session's key. Where nobody has it, this run has one of its own."""
        if self._shared is None:
            return
        self.masks.on_placeholder = self._note_placeholder
        with suppress(
            StoreUnavailable, TimeoutError, ValueError
        ):  # nobody keeps it yet: values are shared all the same
            with anyio.fail_after(_SHARED_SECONDS):
                self.masks.placeholders = Placeholders(await self._shared.key())
        self.is_ready = True

    def may_hide(self, line: bytes) -> bool:
        """A message may have secrets, and searching it may take long; else there is none but in base64, or split."""
        return self._finder.may_find(line)

    def masked_report(self, report: Callable[[str], None]) -> Callable[[str], None]:
        """A function that reports lines to people without secrets."""
        return lambda text: report(self.masks.text(text))

    # --- tools ---

    def is_off(self, tool: str) -> bool:
        """The results of this tool are not looked at."""
        return any(is_about(off.tool, tool) and is_about(off.server, self._server) for off in self._settings.off)

    def restores_for(self, tool: str) -> bool:
        """Some placeholders in arguments of this tool become the values again."""
        return bool(self._rules(tool))

    def values_for(self, tool: str) -> ValueOf:
        """What placeholders stand for in arguments of this tool."""
        rules = self._rules(tool)

        def value_of(placeholder: str) -> Restored | None:
            secret = self.masks.placeholders.value_of(placeholder)
            if secret is None or not any(rule.fullmatch(secret.rule) for rule in rules):
                return None
            self._finder.know(secret.rule, secret.value)  # the tool may repeat it
            return secret

        return value_of

    def _rules(self, tool: str) -> tuple[re.Pattern[str], ...]:
        """The ids of rules whose values this tool may have."""
        if (known := self._rules_by_tool.get(tool)) is None:
            known = tuple(
                re.compile(glob(rule))
                for table in self._settings.restore
                if is_about(table.tool, tool) and is_about(table.server, self._server)
                for rule in table.rules
            )
            if len(self._rules_by_tool) < _MOST_TOOLS:
                self._rules_by_tool[tool] = known
        return known

    # --- other runs of the session ---

    def _note_placeholder(self, placeholder: str, value: bytes) -> None:
        if placeholder not in self._noted:
            if len(self._noted) >= MAX_VALUES:
                self._noted.clear()  # they are reported once more
            self._noted.add(placeholder)
            self._unpublished.keep(placeholder, value.decode("latin-1"), len(value))
            self.has_news = True

    async def publish(self) -> None:
        """Let other runs of the session know this one's placeholders."""
        if not self.has_news:
            return
        self.has_news = False
        values = dict(self._unpublished)
        with suppress(StoreUnavailable, TimeoutError):  # nobody keeps them now: they are sent with the next ones
            with anyio.fail_after(_SHARED_SECONDS):
                if self._shared is not None:
                    await self._shared.keep(values)
            for placeholder in values:
                self._unpublished.forget(placeholder)

    def unknown_in(self, arguments: bytes) -> Sequence[str]:
        """The placeholders in arguments that only another run may know."""
        if self._shared is None:
            return ()
        known = self.masks.placeholders.value_of
        return [text for _, _, text in placeholders_in(arguments) if known(text) is None]

    async def look_up(self, placeholders: Sequence[str]) -> None:
        """Ask other runs what these stand for. What they do not know stays unknown."""
        try:
            with anyio.fail_after(_SHARED_SECONDS):
                for placeholder in placeholders:
                    await self._take_over(placeholder)
        except (StoreUnavailable, TimeoutError):
            return  # it stays a text, as one that nobody knows

    async def _take_over(self, placeholder: str) -> None:
        value = await self._shared.value_of(placeholder) if self._shared is not None else None
        if value is not None:
            self._noted.add(placeholder)
            self.masks.placeholders.adopt(placeholder, value.encode("latin-1"))

    # --- hooks ---

    def context_for(self, spec: HookSpec, context: EventContext) -> EventContext:
        """The event as this hook may see it: with placeholders, or with values in their place."""
        change = self._with_values if spec.sees_values else self.masks.json
        if (past := context.calls) is not None:
            context = replace(context, calls=lambda: self.masks.json(past()))
        arguments, meta = change(context.arguments), change(context.meta) if context.meta else b""
        if context.elicitation is not None and context.elicitation.content:
            content = change(context.elicitation.content)
            if content is not context.elicitation.content:
                context = replace(context, elicitation=replace(context.elicitation, content=content))
        outcome = context.outcome
        if spec.sees_values and outcome is not None:
            texts = {name: self._with_values(getattr(outcome, name)) for name in _OUTPUTS}
            error = self._text_with_values(outcome.error)
            context = replace(context, outcome=replace(outcome, **texts, error=error))
        message = self._text_with_values(context.message) if spec.sees_values else self.masks.text(context.message)
        if arguments is context.arguments and meta == context.meta and message is context.message:
            return context
        return replace(context, arguments=arguments, meta=meta, message=message)

    def _with_values(self, raw: bytes) -> bytes:
        return restored(raw, self.masks.placeholders.value_of)

    def _text_with_values(self, text: str, only: frozenset[str] | None = None) -> str:
        def value(match: re.Match[str]) -> str:
            may = only is None or match[0] in only
            secret = self.masks.placeholders.value_of(match[0]) if may else None
            return match[0] if secret is None else secret.value.decode(errors="replace")

        return PLACEHOLDER.sub(value, text)

    def masked_result(self, result: HookResult, spec: HookSpec, context: EventContext) -> HookResult:
        """What a hook printed, with placeholders in the place of secrets, and of the values that it has seen.

        `context` is the event with placeholders.
        """
        if not (result.stdout or result.stderr):
            return result
        masks = self._masks_for(spec, context)
        stdout, stderr = masks.raw_text(result.stdout), masks.raw_text(result.stderr)
        if stdout is result.stdout and stderr is result.stderr:
            return result
        return replace(result, stdout=stdout, stderr=stderr)

    def _masks_for(self, spec: HookSpec, context: EventContext) -> SecretMasks:
        """What masks what a hook has got and printed: a value may be without the words by which it was found."""
        if not spec.sees_values or not (seen := self._values_in(context)):
            return self.masks
        masks = SecretMasks(SeenValues(self._finder, seen), self.masks.placeholders)
        masks.on_placeholder = self.masks.on_placeholder
        return masks

    def _values_in(self, context: EventContext) -> dict[bytes, str]:
        """The values, each with its rule, whose placeholders are in an event."""
        raws = [context.arguments, context.meta, context.message.encode(errors="replace")]
        if context.outcome is not None:
            raws += [getattr(context.outcome, name) for name in _OUTPUTS]
            raws.append(context.outcome.error.encode(errors="replace"))
        if context.elicitation is not None:
            raws.append(context.elicitation.content or b"")
        value_of = self.masks.placeholders.value_of
        secrets = [value_of(text) for raw in raws if BEGINNING in raw for _, _, text in placeholders_in(raw)]
        return {secret.value: secret.rule for secret in secrets if secret is not None}

    def masked_document(self, document: Document, spec: HookSpec, context: EventContext) -> bytes | bytearray:
        """What a hook got, with placeholders in the place of secrets."""
        return self._masks_for(spec, context).raw_text(bytes(document.stdin))

    def as_meant(
        self, verdict: Verdict, context: EventContext, seen: EventContext, printed: bytes, masked: bytes
    ) -> Verdict:
        """The verdict with the values that the hook has written itself, or the agent: the server gets them.

        What was a placeholder in the call stays one, even where the hook has seen its value. So does what the hook has
        written as a placeholder, or made one of: it may be the agent that has chosen it. `seen` is what the hook has
        got, in which what the agent wrote is masked; `masked` is what it `printed`, masked.
        """
        written = _placeholders(masked) - _placeholders(printed)

        def meant(raw: bytes, given: bytes, shown: bytes) -> bytes:
            own = (written | _placeholders(shown)) - _placeholders(given)
            value_of = self.masks.placeholders.value_of
            return restored(raw, lambda text: value_of(text) if text in own else None)

        if verdict.arguments is not None:
            verdict = replace(verdict, arguments=meant(verdict.arguments, context.arguments, seen.arguments))
        if verdict.meta is not None:
            verdict = replace(verdict, meta=meant(verdict.meta, context.meta, seen.meta))
        if verdict.content is not None:
            verdict = replace(verdict, content=meant(verdict.content, _content_of(context), _content_of(seen)))
        if verdict.variables and context.event is Event.SESSION_START:
            variables = tuple((name, self._text_with_values(value, written)) for name, value in verdict.variables)
            verdict = replace(verdict, variables=variables)
        return verdict


def _content_of(context: EventContext) -> bytes:
    """What an elicitation says, and what was answered."""
    asked = context.elicitation
    return b"" if asked is None else asked.message.encode(errors="replace") + (asked.content or b"")


def _placeholders(raw: bytes) -> frozenset[str]:
    return frozenset(text for _, _, text in placeholders_in(raw)) if BEGINNING in raw else frozenset()


def masks_without_session(finder: Finder) -> SecretMasks:
    """What masks texts that belong to no session: nobody can restore what its placeholders stand for."""
    return SecretMasks(SessionFinder(finder), Placeholders(os.urandom(_KEY_BYTES)))


_OUTPUTS: Final = ("content", "structured", "more", "whole")
"""The members of an outcome that have what the tool has returned."""

_MOST_TOOLS: Final = 4096  # whose rules are remembered: more than any server has
