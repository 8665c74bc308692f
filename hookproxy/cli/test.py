"""`hookproxy test`: runs the cases of a policy, and shows what came out otherwise and which rules no case needs.

Hooks run for real, as under `run`. Nothing of the machine decides a case but the files that are named.

Exit status: 0 all cases passed; 1 some failed, or with `--mutate` nothing notices some change of a rule; 2 they could
not be run; 4 there is no policy.
`docs/json-output.md` describes the document of `--json`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import Final

from ..checks.startup_notes import KeyLines
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, EXIT_NO_POLICY, ConfigError, UserError, not_written
from ..model.similar_names import similar_file, suggestion
from ..policy_tests import report
from ..policy_tests.cases import KINDS, CasesOfFile, Skipped, read_cases, require_cases
from ..policy_tests.compare import Difference
from ..policy_tests.parts import Part
from ..policy_tests.policies import (
    DEFAULT_SERVER,
    FilesNamed,
    PolicyUnderTest,
    isolated_environment,
    own_file,
    policy_beside,
    policy_of_files,
    policy_of_gateway,
)
from ..policy_tests.run import CaseResult, PolicyResult, Progress, Unnoticed, run_policy
from .agent_entry import use_entry
from .common import show, tell, working_directory
from .hook_runtime import redirected_output, run_until_done
from .layout import Page, document, label, new_page, short_path, shortened
from .offline import is_gateway_file, require_policy
from .options import ENTRY_OPTIONS, HOOK_OPTIONS, Parser

_MOMENT: Final = 0.2  # seconds: what is done sooner needs no progress
_MOST_FAILURES: Final = 4  # shown whole, each in about four lines: a person repairs one after another
_ROW_WIDTH: Final = 74  # characters: what is shorter stands on one line of 80 columns
_MOST_LISTED: Final = 6  # lines of one list
_SIMILAR: Final = 0.75  # of a tool's name and a name or a glob in the policy: `delet_x` and `delete_*`
_LONGEST_TEXT: Final = 300  # characters of a text that differs
_DEFAULT_NAMES: Final = ("tests.toml", "tests.yaml", "tests.yml")
_DEFAULT_FOLDER: Final = "tests"


def main(arguments: Sequence[str]) -> int:
    """Run the cases, and print what came out. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    before = dict(os.environ)
    try:
        return _test(options)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _test(options: Namespace) -> int:
    cwd = working_directory()
    if options.server is not None and options.agent is None:
        raise UserError("--server is for --agent: each case names its own server", 'write server = "…" in the case')
    entry = use_entry(options, cwd)
    policy_cwd = cwd if entry is None else entry.cwd
    if entry is not None and options.config is None:
        options.config = own_file(os.environ, policy_cwd) or None
    if options.config is not None:
        options.config = os.path.join(policy_cwd, os.path.expanduser(options.config))
        if not os.path.exists(options.config):  # before anything that follows from it
            hint = similar_file(options.config) or "name the policy: --config hookproxy.toml"
            raise ConfigError(options.config, "there is no such file", hint)
    files = [_cases_of(path, cwd) for path in _case_files(options, cwd)]
    with tempfile.TemporaryDirectory(prefix="hookproxy-test-", ignore_cleanup_errors=True) as state:
        environ = isolated_environment(os.environ, state)
        os.environ.clear()
        os.environ.update(environ)  # Python hooks have it as well
        tested = [
            (_policy(options, config, environ, policy_cwd), of_it) for config, of_it in _by_policy(options, files, cwd)
        ]
        for policy, _ in tested:
            require_policy(policy.all_loaded, "to test")
            tell(*policy.notes, *policy.only_watched)
        progress = _Progress()
        try:
            with redirected_output():
                results = run_until_done(partial(_run_all, tested, bool(options.mutate), progress.show))
        finally:
            progress.end()
    status = 0 if all(result.passed for result in results) else EXIT_FINDINGS
    if options.junit is not None:
        _write(os.path.join(cwd, options.junit), report.junit(results))
    if options.json:
        show(document(report.json_members(results, status)))
    else:
        text = _Text(cwd, bool(options.verbose), bool(options.mutate)).of(results, [file.skipped for file in files])
        with shortened(verbose=options.verbose, end=len(results)):
            show(text)
    return status


async def _run_all(
    tested: Sequence[tuple[PolicyUnderTest, Sequence[CasesOfFile]]], mutate: bool, progress: Progress | None
) -> list[PolicyResult]:
    results = []
    for policy, files in tested:
        cases = [case for file in files for case in file.cases]
        results.append(await run_policy(policy, cases, mutate=mutate, progress=progress))
    return results


class _Progress:
    """How many cases are done, on standard error, if that is a terminal and they take longer than a moment."""

    def __init__(self) -> None:
        self._next = monotonic() + _MOMENT
        self._shown = False
        self.show: Progress | None = self._show if sys.stderr is not None and sys.stderr.isatty() else None

    def _show(self, done: int, total: int, what: str) -> None:
        if monotonic() >= self._next:
            self._next, self._shown = monotonic() + _MOMENT, True
            sys.stderr.write(f"\r\x1b[K{done} of {total} {what}")
            sys.stderr.flush()

    def end(self) -> None:
        """Leave nothing of it."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


# --- which files ---


def _case_files(options: Namespace, cwd: str) -> list[str]:
    """The absolute paths of all files with cases. Raises UserError."""
    if options.files:
        return [file for path in options.files for file in _in_place(os.path.join(cwd, path))]
    if options.config is not None:
        folder = os.path.dirname(os.path.join(cwd, options.config))
    elif options.hooks:
        raise UserError("no file with cases is named", "name it: hookproxy test tests.toml --hooks …")
    else:
        folder = os.path.dirname(own_file(os.environ, cwd))
    found = _beside(folder) if folder else []
    if found:
        return found
    if options.config is None and os.path.isfile(os.path.join(cwd, "hookproxy.toml")):
        hint = "hookproxy test --config hookproxy.toml runs those beside it"
        raise UserError("no file with cases is named, and ./hookproxy.toml is not read unless it is named", hint)
    if not folder:
        problem = "no file with cases and no policy is named, and you have no hookproxy.toml of your own"
        raise UserError(problem, "hookproxy init guard writes one, with its hook", EXIT_NO_POLICY)
    hint = f"write {short_path(os.path.join(folder, 'tests.toml'), cwd)}; hookproxy help test shows a case"
    raise UserError(f"there is no tests.toml and no {_DEFAULT_FOLDER}/*.toml in {folder}", hint)


def _in_place(path: str) -> list[str]:
    """The files with cases at a path. Raises UserError."""
    if not os.path.isdir(path):
        return [os.path.normpath(path)]
    found = _beside(path) or _all_in(path)
    if not found:
        hint = f"name a file, or write {os.path.join(path, 'tests.toml')}"
        raise UserError(f"{path}: has no tests.toml and no {_DEFAULT_FOLDER}/*.toml", hint)
    return found


def _beside(folder: str) -> list[str]:
    """The files with cases that lie beside a policy in this folder."""
    names = [os.path.join(folder, name) for name in _DEFAULT_NAMES]
    return [path for path in names if os.path.isfile(path)] + _all_in(os.path.join(folder, _DEFAULT_FOLDER))


def _all_in(folder: str) -> list[str]:
    """All files of a folder whose names are those of files with cases, but for policies themselves."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [
        os.path.join(folder, name)
        for name in names
        if name.endswith(KINDS) and name not in ("hookproxy.toml", "gateway.toml", "pyproject.toml")
    ]


def _cases_of(path: str, cwd: str) -> CasesOfFile:
    file = read_cases(path)
    require_cases(file, short_path(file.path, cwd))
    return file


def _by_policy(
    options: Namespace, files: Sequence[CasesOfFile], cwd: str
) -> list[tuple[str | None, list[CasesOfFile]]]:
    """The policies with the files that are about them; None: only `--hooks` names any. Raises UserError."""
    if options.config is not None or options.hooks:
        return [(options.config, list(files))]
    by_policy: dict[str | None, list[CasesOfFile]] = {}
    for file in files:
        config = file.config or policy_beside(file.path)
        if not config:
            problem = (
                f"{short_path(file.path, cwd)}: no policy is loaded: no hookproxy.toml or gateway.toml is beside it"
            )
            raise UserError(problem, 'name it: --config FILE, or config = "…" at the top of the file', EXIT_NO_POLICY)
        by_policy.setdefault(os.path.realpath(config), []).append(file)
    return list(by_policy.items())


def _policy(options: Namespace, config: str | None, environ: dict[str, str], cwd: str) -> PolicyUnderTest:
    if config is not None and is_gateway_file(os.path.join(cwd, config)):
        if options.hooks:
            raise UserError("--hooks is not for a gateway's file, which says all that counts", "remove --hooks")
        return policy_of_gateway(config, environ, cwd)
    return policy_of_files(
        FilesNamed(config, tuple(options.hooks), options.project, bool(getattr(options, "fail_closed", False))),
        environ,
        cwd,
        getattr(options, "name", None) or DEFAULT_SERVER,
    )


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as problem:
        raise not_written(path, problem) from None


# --- the command line ---


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "test",
        "Run the cases of a policy: calls, each with the decision that is expected. Hooks run for real, at the same "
        "time, and nothing decides but the files that are named: neither the administrator's files nor your own "
        'configuration. A case is a table [[case]] with call = { tool = "send_mail", arguments = { } } and '
        'expect = { decision = "ask" }, or "allow" or "deny". '
        "Exit status: 0 all passed, 1 some failed, 2 they could not be run, 4 there is no policy.",
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="files with cases (.toml, .yaml), audit files (.jsonl), or folders with a policy and its tests "
        "(default: tests.toml and tests/* beside hookproxy.toml)",
    )
    parser.add_common(*HOOK_OPTIONS, *ENTRY_OPTIONS)
    parser.add_argument("--server", metavar="NAME", help="with --agent: the server whose entry is meant")
    parser.add_argument(
        "--mutate",
        action="store_true",
        help="also take out, weaken and swap each rule, limit and hook, and list the changes that no case notices",
    )
    parser.add_argument("--junit", metavar="FILE", help="write the results as JUnit's XML")
    parser.add_argument("--verbose", action="store_true", help="show all failures, and all that no case needs")
    parser.add_common("--json")
    return parser


# --- the output for people ---


class _Text:
    """The output: failures first, then what no case needs, and a line for each policy."""

    def __init__(self, cwd: str, verbose: bool, mutated: bool) -> None:
        self._cwd = cwd
        self._verbose = verbose
        self._mutated = mutated
        self._page: Page = new_page()

    def of(self, results: Sequence[PolicyResult], skipped: Sequence[Skipped]) -> str:
        """All of it."""
        failed = [case for result in results for case in result.results if not case.passed]
        shown = failed if self._verbose else failed[:_MOST_FAILURES]
        names = [name for result in results for name in result.policy.names]
        for case in shown:
            self._failure(case, names)
        self._names([case.case.name for case in failed[len(shown) :]], "also failed")
        for result in results:
            self._unneeded(result)
        self._notes(skipped, bool(failed))
        several = len(results) > 1
        for result in results if several else ():
            self._page.line(f"{self._short(result.policy.path)}: ", *self._sums([result]))
        self._page.line("together: " if several else "", *self._sums(results))
        return self._page.text

    def _failure(self, result: CaseResult, names: Sequence[str]) -> None:
        page, case = self._page, result.case
        page.line(("FAIL ", "bold red"), (f"{self._short(case.place)}  ", "bold"), case.name)
        if result.problem:
            page.row(label("problem"), result.problem)
        for number, step in enumerate(result.steps, 1):
            if step.differences and (len(case.steps) > 1 or step.time > 1):
                time = f", the {step.time}th time" if step.time > 1 else ""
                page.row(label("step"), f"{number}{time}")
            for difference in step.differences:
                self._difference(difference)
            tool = case.steps[number - 1].call.tool
            if step.differences and tool not in names and (near := suggestion(tool, names, _SIMILAR)):
                page.row(label("tool"), f"no rule and no hook names {tool}: {near}", "yellow")

    def _difference(self, difference: Difference) -> None:
        first, second = (_cut(text) for text in (difference.expected, difference.actual))
        self._page.row(label(difference.what), f"expected {first}")
        self._page.row(label(""), f"was {second}", "yellow")

    def _names(self, names: Sequence[str], title: str) -> None:
        if names:
            shown = ", ".join(names[:_MOST_LISTED])
            more = f", and {len(names) - _MOST_LISTED} more: --verbose" if len(names) > _MOST_LISTED else ""
            self._page.row((f"{title}: ", "dim"), f"{shown}{more}")

    def _unneeded(self, result: PolicyResult) -> None:
        """The parts that decided no case, and the mutants that none noticed."""
        undecided, ran = result.undecided, result.ran
        rows = [(part, "ran, and decided no case" if part in ran else "decided no case") for part in undecided]
        if result.mutation is not None:
            changes: dict[Part, list[Unnoticed]] = {}
            for one in result.mutation.unnoticed:
                if one.mutant.part not in undecided:
                    changes.setdefault(one.mutant.part, []).append(one)
            rows += [
                (part, f"no case notices: {'; '.join(one.mutant.change for one in of_part)}")
                for part, of_part in changes.items()
            ]
        shown = rows if self._verbose else rows[:_MOST_LISTED]
        lines = KeyLines()
        for part, text in shown:
            place = self._short(_line_of(part.place, lines))
            if len(part.words) + len(place) + len(text) < _ROW_WIDTH:
                self._page.line((part.words, "bold"), f"  {place}  ", (text, "yellow"))
            else:
                self._page.line((part.words, "bold"), f"  {place}")
                self._page.row(("  ", ""), text, "yellow")
        if len(rows) > len(shown):
            self._page.line(f"and {len(rows) - len(shown)} more such rules, limits and hooks: --verbose")

    def _notes(self, skipped: Sequence[Skipped], failed: bool) -> None:
        for attribute, text in (
            ("digests", "recorded only with a digest of the arguments"),
            ("limited", "refused by a rate limit or a sink, which depends on the calls before"),
            ("undecided", "never decided"),
        ):
            if count := sum(getattr(one, attribute) for one in skipped):
                self._page.row(label("left out"), f"{counted(count, 'recorded call')} {text}")
        if count := sum(one.in_part for one in skipped):
            text = "masked or shortened arguments, by which they are judged"
            self._page.row(label("note"), f"{counted(count, 'recorded call')} with {text}")
        if failed and self._mutated:
            self._page.row(label("note"), "no mutants were tried, because a case fails without them")

    def _sums(self, results: Sequence[PolicyResult]) -> Sequence[tuple[str, str]]:
        cases = [case for result in results for case in result.results]
        failed = sum(not case.passed for case in cases)
        parts = [part for result in results for part in result.parts]
        undecided = [part for result in results for part in result.undecided]
        mutations = [result.mutation for result in results if result.mutation is not None]
        unnoticed = sum(len(mutation.unnoticed) for mutation in mutations)
        texts = [
            f"{failed} of {counted(len(cases), 'case')} failed" if failed else f"{counted(len(cases), 'case')} passed"
        ]
        texts.append(f"{len(parts) - len(undecided)} of {len(parts)} rules, limits and hooks decided one")
        if mutations:
            total = sum(mutation.total for mutation in mutations)
            texts.append(f"{total - unnoticed} of {counted(total, 'change')} of them noticed")
        texts.append(f"{sum(result.seconds for result in results):.1f} s")
        good = not failed and not unnoticed
        return [(", ".join(texts), "green" if good else "bold red")]

    def _short(self, path: str) -> str:
        return short_path(path, self._cwd)


def _line_of(place: str, lines: KeyLines) -> str:
    """File and line of a rule, a limit or a hook."""
    where, _, key = place.rpartition(": ")
    if not where or where.rpartition(":")[2].isdecimal():
        return where or place
    line = lines.line(where, key)
    return f"{where}:{line}" if line else place


def _cut(text: str) -> str:
    rest = len(text) - _LONGEST_TEXT
    return f"{text[:_LONGEST_TEXT]}… ({rest} more characters: --json)" if rest > 0 else text
