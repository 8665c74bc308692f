"""The tables of hookproxy.toml about what is recorded: `[audit]` and `[otel]`."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from .models_base import Path, Table

LEAST_FILE_BYTES: Final = 64 * 1024  # less would begin a new file every few calls
_Word = Annotated[str, Field(min_length=1)]


class Audit(Table):
    """The audit log: one line of JSON for each call."""

    file: Path | None = Field(
        None,
        description="Where lines are appended. A relative path starts from the folder of hookproxy.toml. `{user}` in "
        "it stands for the name of the account that hookproxy runs as; after a slash at its end, USER.jsonl is added.",
    )
    required: bool = Field(False, description="Refuse a call whose line cannot be written.")
    arguments: Literal["full", "digest"] = Field(
        "full", description='"full": the call\'s arguments; "digest": their SHA-256 instead.'
    )
    calls: Literal["judged", "all"] = Field(
        "judged", description='"judged": calls that a hook concerns; "all": the others, too.'
    )
    chain: bool = Field(
        False,
        description="Each line names the SHA-256 of the one before as `previous`: `hookproxy audit verify` finds what "
        "was changed, removed or inserted later. All who write to the file must have it.",
    )
    shared: bool = Field(
        False,
        description="Several accounts write to this file: it is readable and writable for the group of its folder, "
        "which must be there. Otherwise it is its owner's alone.",
    )
    max_file_bytes: Annotated[int, Field(ge=LEAST_FILE_BYTES)] | None = Field(
        None,
        description="A file that would grow beyond is renamed to FILE.1, the next one to FILE.2 and so on, and a new "
        "one is begun; none is removed. Not given: never.",
    )
    redact: list[_Word] = Field(
        [],
        description="Regular expressions of Python's: what one finds in a text (in arguments, and in what hooks said) "
        "is recorded as [redacted], and a text of more than 65536 characters as a whole. One that repeats what "
        "repeats, as (a+)+ does, may take for ever: leave such out.",
    )
    redact_keys: list[_Word] = Field(
        [],
        description="Names of arguments, at any depth, whose values are recorded as [redacted], in any spelling: "
        "api_key means apiKey and API-Key, too.",
    )


class Otel(Table):
    """Spans and metrics of judged calls, for an OpenTelemetry collector. Needs `hookproxy[otel]`."""

    enabled: bool = Field(False, description="Send them.")
    endpoint: Annotated[str, Field(pattern=r"^https?://[^/]")] | None = Field(
        None,
        description="The collector's OTLP/HTTP address, to which /v1/traces and /v1/metrics are added. Not given: what "
        "OTEL_EXPORTER_OTLP_ENDPOINT says, else http://localhost:4318.",
    )
