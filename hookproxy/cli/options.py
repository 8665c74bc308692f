"""Reads command lines: argparse as it is declared, without importing it for a command line that holds no surprise.

argparse takes 12 ms of a start. A `Parser` remembers how its options are declared, and reads a usual command line
itself; whatever it does not know (a misspelled option, `--help`, a missing value, options that exclude each other) it
gives to the argparse parser that these declarations make. So all errors and all help are argparse's.
"""

TYPE_CHECKING = False  # `typing` itself takes 9 ms to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _ArgumentGroup
    from collections.abc import Callable, Sequence
    from typing import NoReturn, TypeAlias

    Options: TypeAlias = Namespace
else:

    class Options:
        """The values of a command line, as an argparse.Namespace."""

        def __init__(self, **values):  # noqa: ANN003, ANN204
            vars(self).update(values)


class Parser:
    """The command line of one verb. An error in it becomes a UserError with the hint, or else with the usage."""

    def __init__(self, verb: str, usage: str, description: str, hint: str = "") -> None:
        self.verb, self.usage, self.description, self.hint = verb, usage, description, hint
        self.epilog: str | None = None
        self._declared: list[_Declared] = []

    def add_argument(self, *names: str, group: "_Group | None" = None, **keywords: object) -> None:
        """Declare an option or a positional word, as for argparse."""
        self._declared.append(_Declared(names, keywords, group))

    def add_argument_group(self, title: str) -> "_Group":
        """Return a group of options with a title in the help."""
        return _Group(self, title)

    def add_mutually_exclusive_group(self) -> "_Group":
        """Return a group of options of which at most one may be given."""
        return _Group(self)

    def options(self, *, with_value: bool) -> set[str]:
        """The options that need a value, or those that are complete without one."""
        own = {name for one in self._declared if one.is_option and one.is_flag is not with_value for name in one.names}
        return own if with_value else own | {"-h", "--help"}

    def parse_args(self, words: "Sequence[str]") -> "Options":
        """The values of a command line. Raises UserError; prints the help and raises SystemExit if that is wanted."""
        values = self._read(list(words))
        return self.argparse().parse_args(words) if values is None else Options(**values)

    def _read(self, words: list[str]) -> "dict[str, object] | None":
        """The values of a usual command line; None: argparse must read it."""
        values = {one.target: one.default for one in reversed(self._declared)}  # the first declaration counts
        options = {name: one for one in self._declared if one.is_usual for name in one.names}
        free: list[str] = []
        while words:
            if not words[0].startswith("-"):
                count = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
                if free or "" in words[:count]:  # argparse may refuse positional words that do not stand together
                    return None
                free = words[:count]
            else:
                option = options.get(words[0].partition("=")[0])
                count = option.store(words, values) if option else 0
                if not count:
                    return None
            words = words[count:]
        if any(one.is_required and values[one.target] is None for one in self._declared):
            return None
        return values if self._store_free(free, values) else None

    def _store_free(self, words: list[str], values: dict[str, object]) -> bool:
        """Put the positional words into the values. False: they are too many, too few, or declared in another way."""
        for one in self._declared:
            if one.is_option:
                continue
            if not one.is_usual:
                return False
            if one.count == "*":
                values[one.target], words = words or one.default or [], []
            elif words:
                values[one.target], words = words[0], words[1:]
            elif one.count != "?":
                return False
        return not words

    def argparse(self) -> "ArgumentParser":
        """The argparse parser of these declarations."""
        parser = _argparse_parser(self)
        groups: dict[_Group | None, ArgumentParser | _ArgumentGroup] = {None: parser}
        for one in self._declared:
            if one.group and one.group not in groups:
                title = one.group.title
                groups[one.group] = parser.add_argument_group(title) if title else parser.add_mutually_exclusive_group()
            groups[one.group].add_argument(*one.names, **one.keywords)  # type: ignore[arg-type]  # as declared
        return parser


class _Group:
    """Options that stand together in the help; without a title, they exclude each other."""

    def __init__(self, parser: Parser, title: str = "") -> None:
        self.title, self._parser = title, parser

    def add_argument(self, *names: str, **keywords: object) -> None:
        """Declare an option of the group."""
        self._parser.add_argument(*names, group=self, **keywords)


class _Declared:
    """An option, or a positional word, as it was declared."""

    def __init__(self, names: tuple[str, ...], keywords: dict[str, object], group: _Group | None) -> None:
        self.names, self.keywords, self.group = names, keywords, group
        self.target = str(keywords.get("dest") or names[-1].lstrip("-").replace("-", "_"))
        self.count, action = keywords.get("nargs"), keywords.get("action")
        self.is_option, self.is_flag = names[0].startswith("-"), action in ("store_true", "store_false")
        self.is_list, self.is_required = action == "append", "required" in keywords
        self.convert: Callable[[str], object] = keywords.get("type", str)  # type: ignore[assignment]  # as declared
        self.default = keywords.get("default", action == "store_false" if self.is_flag else None)
        known = (
            {"action", "default", "dest", "help", "metavar", "required", "type"}
            if self.is_option
            else {"default", "help", "metavar", "nargs"}
        )
        self.is_usual = (
            known.issuperset(keywords)
            and (self.is_flag or self.is_list or action is None)
            and (group is None or bool(group.title))  # it cannot exclude another one
        )

    def store(self, words: list[str], values: dict[str, object]) -> int:
        """Put the value of this option, with which the words begin, into the values.

        Returns how many words it takes; 0: argparse must read it.
        """
        _, equals, value = words[0].partition("=")
        if self.is_flag:
            values[self.target] = self.keywords["action"] == "store_true"
            return 0 if equals else 1
        if not equals:
            value = words[1] if len(words) > 1 else ""
        if value in ("", "--") or (value.startswith("-") and not equals):
            return 0
        so_far = values[self.target]
        if self.is_list:
            values[self.target] = [*(so_far if isinstance(so_far, list) else ()), value]
        else:
            try:
                values[self.target] = self.convert(value)
            except Exception:  # whatever a `type` raises: argparse calls it again, and reports it
                return 0
        return 1 if equals else 2


def _argparse_parser(declared: Parser) -> "ArgumentParser":
    """A parser of argparse with our errors and our help, still without options."""
    from argparse import ArgumentParser, ArgumentTypeError

    from ..model.errors import UserError

    usage = f"usage: {declared.usage}"

    def not_empty(text: str) -> str:
        """Return the text unchanged. An empty one is an error: it comes from an unset variable of the shell."""
        if not text:
            raise ArgumentTypeError("is empty")
        return text

    class WithOurErrors(ArgumentParser):
        def error(self, message: str) -> "NoReturn":
            """Raise a UserError; for a misspelled option, its hint suggests the right one."""
            from ..dialects.shared.hook_file import suggestion

            argument, invalid, choice = message.partition(": invalid choice: ")
            if invalid:
                value, _, choices = choice.partition(" (choose from ")
                known = choices.rstrip(")").replace("'", "").split(", ")
                near = suggestion(value.strip("'"), known) or f"one of {', '.join(known)}"
                raise UserError(f"{argument}: there is no {value}", near)
            if "unrecognized" not in message:
                argument, not_int, value = message.partition(": invalid int value: ")
                raise UserError(f"{argument}: {value} is not a whole number" if not_int else message, usage)
            words = message.split()
            wrong = next((word.partition("=")[0] for word in words if word.startswith("-")), "")
            near = suggestion(wrong, self._option_string_actions)
            raise UserError(f"there is no option {wrong}" if wrong else message, near or declared.hint or usage)

        def format_help(self) -> str:
            """Return the help, with examples."""
            from .help_text import WholeWords, more_help

            self.formatter_class = WholeWords
            return super().format_help() + more_help(self)

    parser = WithOurErrors(
        prog=f"hookproxy {declared.verb}",
        usage=declared.usage,
        description=declared.description,
        epilog=declared.epilog,
        allow_abbrev=False,
    )
    parser.register("type", None, not_empty)
    return parser
