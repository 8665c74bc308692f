"""The JSON Schemas of hookproxy.toml and gateway.toml, from the configuration's models."""

import json

from pydantic.json_schema import GenerateJsonSchema

from hookproxy.config.gateway_models import GatewayFile
from hookproxy.config.models import ConfigFile, Table
from hookproxy.config.pydantic_models import model_of
from hookproxy.model.settings import FORMER_KEYS


class _GeneratorWithoutTitles(GenerateJsonSchema):
    """Without titles, which only repeat the keys."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def schema(table: type[Table] = ConfigFile, title: str = "hookproxy.toml") -> str:
    """The schema as text. TOML has no null: a key is left out."""
    document = model_of(table).model_json_schema(by_alias=True, schema_generator=_GeneratorWithoutTitles)
    for part in [document, *document["$defs"].values()]:
        del part["title"]
        if "properties" not in part:
            part.pop("description", None)  # of an enum, which is for readers of the code
        for key in part.get("properties", {}).values():
            if "null" in [one.get("type") for one in key.get("anyOf", ())]:
                kinds = [one for one in key.pop("anyOf") if one.get("type") != "null"]
                del key["default"]
                key.update(kinds[0] | key if len(kinds) == 1 else {"anyOf": kinds})
        properties = part.get("properties", {})
        for former, name in FORMER_KEYS.items():
            if name in properties:
                about = {"description": f"The former name of `{name}`.", "deprecated": True}
                properties[former] = properties[name] | about
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return json.dumps(head | document, indent=2, ensure_ascii=False) + "\n"


def gateway_schema() -> str:
    """The schema of gateway.toml."""
    return schema(GatewayFile, "gateway.toml")
