"""The reference of the command line, from the parsers that read it."""

import argparse
from collections.abc import Iterator
from importlib import import_module

from tables import row

from hookproxy.cli.main import VERBS


def summary() -> str:
    """A line for each verb."""
    rows = [(name, parser) for verb, path in VERBS.items() for name, parser in _parsers(verb, path)]
    lines = [
        row(f"`hookproxy {name}`", (parser.description or "").partition(". ")[0].removesuffix("."))
        for name, parser in rows
    ]
    return "\n".join([row("", "what it does"), row("---", "---"), *lines])


def verbs() -> str:
    """A section for each verb: its usage, what it does, its options."""
    return "\n\n".join(_section(name, parser) for verb, path in VERBS.items() for name, parser in _parsers(verb, path))


def _parsers(verb: str, path: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    module = import_module(path)
    yield verb, module.build_parser()
    for part, parser in getattr(module, "subverb_parsers", dict)().items():
        yield f"{verb} {part}", parser


def _section(name: str, parser: argparse.ArgumentParser) -> str:
    actions = [one for one in parser._actions if one.help != argparse.SUPPRESS and one.dest != "help"]
    usage = " ".join((parser.usage or "").split())
    parts = [f"### hookproxy {name}", f"`{usage}`", parser.description or ""]
    if actions:
        rows = [row(_option_text(one), (one.help or "").replace("%%", "%").replace("|", "\\|")) for one in actions]
        parts.append("\n".join([row("option", "meaning"), row("---", "---"), *rows]))
    return "\n\n".join(parts)


def _option_text(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices:
        value = "|".join(str(one) for one in action.choices)
    if not action.option_strings:
        text = value
    elif action.nargs == 0:
        text = ", ".join(action.option_strings)
    else:
        text = f"{', '.join(action.option_strings)} {value}"
    return f"`{text}`".replace("|", "\\|")
