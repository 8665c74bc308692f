"""Which tables and keys a file may have, as the models of `pydantic_models` say it: for errors only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, get_args, get_origin

if TYPE_CHECKING:
    from pydantic import BaseModel


def names_of(model: type[BaseModel]) -> list[str]:
    """The keys of a table, as the file spells them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def model_around(at: Sequence[str | int], model: type[BaseModel]) -> type[BaseModel]:
    """The model of the table that contains a key."""
    table = model
    for part in at[:-1]:
        if isinstance(part, str):  # otherwise it is the number of an item; a part may be the name of a tool, too
            table = next(_models_in(annotation_of(table, part)), table)
    return table


def table_of(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model of a table that is the value of a key, not an item of a list or a dictionary."""
    annotation = annotation_of(model, name)
    within_others = get_origin(annotation) in (list, dict)
    return None if within_others else next(_models_in(annotation), None)


def item_of(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model of the tables in the array `[[name]]`; None: a file has none of this name."""
    annotations = (annotation_of(model, name), *get_args(annotation_of(model, name)))
    lists = (annotation for annotation in annotations if get_origin(annotation) is list)
    return next((inner for listed in lists for inner in _models_in(listed)), None)


def is_table_by_name(model: type[BaseModel], name: str) -> bool:
    """Whether a file has tables `[name.X]`, each with keys of its own."""
    annotation = annotation_of(model, name)
    return get_origin(annotation) is dict and any(_models_in(annotation))


def tables_with(name: str, model: type[BaseModel]) -> list[str]:
    """The headers of the tables of a file that have a key of this name, such as `[audit]` and `[[limits]]`.

    Of a table and the tables in it, the outer one: `[permissions]`, and not `[[permissions.for]]`.
    """
    headers = [header for header, table in _tables(model, "", []) if name in names_of(table)]
    names = [header.strip("[]") for header in headers]
    inner = {one for one in names for outer in names if one.startswith(f"{outer}.")}
    return [header for header in headers if header.strip("[]") not in inner]


def _tables(model: type[BaseModel], prefix: str, seen: list[type[BaseModel]]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Each table in a table with its header, once: all events have tables of hooks, and one of them stands for all."""
    for name in names_of(model):
        for inner in _models_in(annotation_of(model, name)):
            if inner in seen:
                continue
            seen.append(inner)
            by_name = f"{prefix}{name}.NAME" if is_table_by_name(model, name) else f"{prefix}{name}"
            is_item = item_of(model, name) is not None
            yield (f"[[{by_name}]]" if is_item else f"[{by_name}]"), inner
            if not is_item:
                yield from _tables(inner, f"{by_name}.", seen)


def annotation_of(model: type[BaseModel], name: str) -> object:
    """The type of a key; None if the table has none of this name."""
    fields = {field.alias or own: field for own, field in model.model_fields.items()}
    return fields[name].annotation if name in fields else None


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    from pydantic import BaseModel  # it is imported already: the error comes from it

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def is_of_cases(model: type[BaseModel]) -> bool:
    """Whether it is a file with cases, of which there is no schema."""
    return "case" in model.model_fields


def is_of_pack(model: type[BaseModel]) -> bool:
    """Whether it is a `pack.toml`, of which there is no schema."""
    return "needs" in model.model_fields


def schema_verb(model: type[BaseModel]) -> str:
    """The command that shows what the keys of such a file may be."""
    if is_of_pack(model):
        return "`hookproxy pack new` in another folder"
    if is_of_cases(model):
        return "`hookproxy help test`"
    return "`hookproxy schema --gateway`" if "gateway" in model.model_fields else "`hookproxy schema`"
