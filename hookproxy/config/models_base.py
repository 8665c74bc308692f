"""What every table of hookproxy.toml has in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Path = Annotated[str, Field(min_length=1)]
"""A file as written; where a relative one starts from, its key says."""


class Table(BaseModel):
    """A table of the file: no keys but the named, and no values but of their type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
