"""Which files a command names and imports, and what cannot be determined."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import HookSpec
from hookproxy.trust import scripts
from hookproxy.trust.scripts import imported_names, module_files
from tests.support.proxy_rig import hook

ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/home/me", "FOLDER": "hooks"}


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    for name in ("guard.sh", "guard.py", "rules.json", "with blank.sh", "hooks/inner.sh", "in.txt", "out.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    return tmp_path


def files_of(cwd: Path, shell: str) -> scripts.CommandFiles:
    return scripts.files_of_hook(replace(hook(shell), cwd=str(cwd)), ENVIRON)


def relative(cwd: Path, paths: list[str] | tuple[str, ...]) -> list[str]:
    """The paths inside the folder, relative to it."""
    return [path.removeprefix(f"{cwd}/") for path in paths if path.startswith(str(cwd))]


@pytest.mark.parametrize(
    ("line", "programs", "named"),
    [
        ("./guard.sh", ["guard.sh"], []),
        ("./guard.sh --rules rules.json -v", ["guard.sh"], ["rules.json"]),
        ("./guard.sh --rules=rules.json", ["guard.sh"], ["rules.json"]),
        ("python3 guard.py rules.json", ["guard.py"], ["rules.json"]),
        ("python3 -I -B guard.py", ["guard.py"], []),
        ("sh 'with blank.sh'", ["with blank.sh"], []),
        ('"$FOLDER"/inner.sh', ["hooks/inner.sh"], []),
        ("${FOLDER}/inner.sh", ["hooks/inner.sh"], []),
        ("cat | ./guard.sh && sh hooks/inner.sh; true", ["guard.sh", "hooks/inner.sh"], []),
        ("if ./guard.sh; then sh hooks/inner.sh; fi", ["guard.sh", "hooks/inner.sh"], []),
        ("A=1 env B=2 timeout 5 ./guard.sh", ["guard.sh"], []),
        ("./guard.sh >out.txt 2>>out.txt", ["guard.sh"], []),
        ("./guard.sh <in.txt", ["guard.sh"], ["in.txt"]),
        ("cat | tee -a out.txt", [], []),
        ("sh -c 'exec ./guard.sh'", ["guard.sh"], []),
        ("sh -c \"sh -c './guard.sh'\"", ["guard.sh"], []),
        (". ./guard.sh", ["guard.sh"], []),
        ("source guard.sh && x", ["guard.sh"], []),
        ("./gone.sh", ["gone.sh"], []),
        ("python3 gone.py", ["gone.py"], []),
        ("(./guard.sh)", ["guard.sh"], []),
        ("cat <<'E'\n./guard.sh\nE", ["guard.sh"], []),
        ("./guard.sh 'open", ["guard.sh"], []),
        ("bash -e guard.sh", ["guard.sh"], []),
        ("bash -ec ./guard.sh", ["guard.sh"], []),
        ("cd hooks && ./inner.sh rules.json", ["inner.sh", "hooks/inner.sh"], ["rules.json"]),
        ("cd -- hooks; sh inner.sh", ["inner.sh", "hooks/inner.sh"], []),
        ('test "$(./guard.sh)" = ok || exit 2', ["guard.sh"], []),
        ("x=`./guard.sh`", ["guard.sh"], []),
        ("D=hooks; sh $D/inner.sh", ["hooks/inner.sh"], []),
        ("", [], []),
        ("\0", [], []),
    ],
)
def test_the_files_of_a_command_line(cwd: Path, line: str, programs: list[str], named: list[str]) -> None:
    files = files_of(cwd, line)
    assert relative(cwd, files.programs) == programs
    assert relative(cwd, files.named) == named


def test_programs_are_found_in_path_and_shell_builtins_are_left_out(cwd: Path) -> None:
    files = files_of(cwd, "cd /tmp; cat rules.json")
    assert len(files.programs) == 1
    assert files.programs[0].endswith("/cat")


@pytest.mark.parametrize(
    ("line", "not_covered"),
    [
        ("python3 -c 'import os'", "the code after python3 -c"),
        ("node -e 'x'", "the code after node -e"),
        ("python3 -m guards", "the module guards"),
        ("${X:-.}/guard.sh", "${X:-.}/guard.sh, which only a shell can expand"),
        ("$X", "$X, which only a shell can expand"),
    ],
)
def test_what_cannot_be_determined_is_described(cwd: Path, line: str, not_covered: str) -> None:
    assert files_of(cwd, line).not_covered == [not_covered]


def test_the_files_of_a_program_without_a_shell(cwd: Path) -> None:
    files = scripts.files_of_command(["python3", "guard.py", "$FOLDER"], str(cwd), ENVIRON)
    assert relative(cwd, files.all) == ["guard.py"]


def test_the_interpreter_in_a_scripts_first_line_is_one_of_its_programs(cwd: Path) -> None:
    own = cwd / "bin" / "mine"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    (cwd / "guard.sh").write_text(f"#!{own} -x\n")
    assert relative(cwd, files_of(cwd, "./guard.sh").programs) == ["guard.sh", "bin/mine"]
    (cwd / "guard.sh").write_text("#!/usr/bin/env -S mine -x\n")
    files = scripts.files_of_hook(replace(hook("./guard.sh"), cwd=str(cwd)), {"PATH": f"{cwd}/other:bin:/bin"})
    assert relative(cwd, files.programs) == ["guard.sh", "bin/mine"]
    assert relative(cwd, files.missing_programs) == ["other/mine"]


def test_earlier_places_in_path_are_recorded_as_missing_programs(cwd: Path) -> None:
    path = {"PATH": f"{cwd}/first:{cwd}/hooks:/usr/bin:/bin:{cwd}/late"}
    files = scripts.files_of_hook(replace(hook("sh guard.sh"), cwd=str(cwd)), path)
    assert relative(cwd, files.missing_programs) == ["first/sh", "hooks/sh"]


def test_the_files_of_a_function_are_its_module_and_its_packages(cwd: Path) -> None:
    for name in ("pack/__init__.py", "pack/inner.py"):
        (cwd / name).parent.mkdir(exist_ok=True)
        (cwd / name).write_text("")
    spec: HookSpec = replace(hook(""), type="python", call="pack.inner:check", cwd=str(cwd))
    files = scripts.files_of_hook(spec, ENVIRON)
    assert relative(cwd, files.programs) == ["pack/__init__.py", "pack/inner.py"]
    assert files.not_covered == ["what pack.inner imports"]


def test_imported_modules_beside_a_script_or_function_are_its_files(cwd: Path) -> None:
    (cwd / "guard.py").write_text("import rules\n")
    (cwd / "rules.py").write_text("from more import x\n")
    for name in ("more.py", "json.py", "nothing.py"):
        (cwd / name).write_text("")
    for files in (files_of(cwd, "python3 -B guard.py"), files_of(cwd, "cd hooks; python3 ../guard.py")):
        assert relative(cwd, files.named) == ["json.py", "more.py", "rules.py"]
    assert relative(cwd, files_of(cwd, "python3 -I guard.py").named) == []
    function = scripts.files_of_hook(replace(hook(""), type="python", call="guard:check", cwd=str(cwd)), ENVIRON)
    assert relative(cwd, function.named) == ["json.py", "more.py", "rules.py"]


@pytest.mark.parametrize("name", ["inner.cpython-311.so", "inner.pyc", "inner/__init__.py"])
def test_files_that_python_would_import_instead_are_included(cwd: Path, name: str) -> None:
    for path in (cwd / "inner.py", cwd / name, cwd / "inner.txt", cwd / "inner2.py"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    files = scripts.files_of_hook(replace(hook(""), type="python", call="inner:check", cwd=str(cwd)), ENVIRON)
    assert sorted(relative(cwd, files.programs)) == sorted(["inner.py", name])


def test_a_web_service_has_no_files(cwd: Path) -> None:
    spec = replace(hook(""), type="http", url="https://guard.example/x?secret", cwd=str(cwd))
    files = scripts.files_of_hook(spec, ENVIRON)
    assert (files.all, files.not_covered) == ((), ["the service at https://guard.example/x"])


# --- Python modules ---


def test_modules_and_packages_are_found_by_name(tmp_path: Path) -> None:
    for name in ("a.py", "a.cpython-311.so", "b/__init__.py", "b/c/d.py", "b/data.txt", "e/f.py", "g.py", "a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b/__pycache__").mkdir()
    (tmp_path / "b/__pycache__/d.cpython-311.pyc").touch()
    found = sorted(path.removeprefix(f"{tmp_path}/") for path in module_files(str(tmp_path), {"a", "b", "e"}))
    assert found == ["a.cpython-311.so", "a.py", "b/__init__.py", "b/c/d.py", "e/f.py"]
    assert module_files(str(tmp_path / "gone"), {"a"}) == []


def test_names_in_import_statements_are_found(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os.path, json as j\nfrom .rules import deny\nimportant = 1\n")
    assert imported_names(str(script)) == {"os", "json", "rules", "deny"}
    os.mkfifo(tmp_path / "pipe")
    assert imported_names(str(tmp_path / "pipe")) == imported_names(str(tmp_path / "gone")) == frozenset()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("if True:\n    import rules\n", {"rules"}),
        ("try:\n    import rules\nexcept ImportError:\n    rules = None\n", {"rules"}),
        (
            "def f():\n    from rules import (\n        deny,  # import this\n        ask,\n    )\n",
            {"rules", "deny", "ask"},
        ),
        ("import rules, \\\n    more\n", {"rules", "more"}),
        ("text = 'import nothing'\n", set()),
        ("import importlib\nimportlib.import_module('ru' + 'les')\n", {"importlib", "*"}),
        ("from importlib import import_module as load\nload('rules')\n", {"importlib", "import_module", "*"}),
        ("__import__('rules')\n", {"*"}),
        ("exec(open('rules.py').read())\n", {"*"}),
        ("print 'Python 2'\n", {"*"}),
        ("\xff\n", {"*"}),
        ("x = " + "(" * 500 + ")" * 500 + "\n", {"*"}),
        ("x = 1\n" * 200_000, {"*"}),
    ],
)
def test_names_that_a_script_imports_or_may_import(tmp_path: Path, source: str, names: set[str]) -> None:
    (tmp_path / "script.py").write_text(source, encoding="latin-1")
    assert imported_names(str(tmp_path / "script.py")) == names


def test_a_script_that_computes_what_it_imports_depends_on_its_whole_folder(cwd: Path) -> None:
    (cwd / "guard.py").write_text("import importlib\nimportlib.import_module(name)\n")
    for name in ("a.py", "deep/er/b.py", "data.txt"):
        (cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (cwd / name).write_text("")
    found = relative(cwd, files_of(cwd, "python3 guard.py").named)
    assert set(found) >= {"a.py", "deep/er/b.py"}
    assert "data.txt" not in found


def test_a_folder_is_no_package_if_python_has_a_module_of_its_name(tmp_path: Path) -> None:
    for name in ("json/a.py", "test/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert module_files(str(tmp_path), {"json", "test"}) == [str(tmp_path / "test/__init__.py")]


def test_a_folder_that_is_too_large_to_be_watched_is_an_error(cwd: Path) -> None:
    (cwd / "guard.py").write_text("exec(code)\n")
    for number in range(1001):
        (cwd / f"many/{number}").mkdir(parents=True)
    with pytest.raises(ConfigError, match="more than 1000 folders"):
        files_of(cwd, "python3 guard.py")
    (cwd / "many").rename(cwd.parent / "elsewhere")
    (cwd / "loop").symlink_to(cwd)
    assert relative(cwd, files_of(cwd, "python3 guard.py").programs) == ["guard.py"]
