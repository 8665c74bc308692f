"""Some four thousand further spellings of `rm`, and what must not be taken for one."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Final

import pytest

from hookproxy.policy.globs import WorkBudget
from hookproxy.policy.shell_commands import Runs, command_matcher
from hookproxy.shell.commands import commands_of

SPELLINGS: Final = Path(__file__).with_name("spellings.txt").read_bytes().decode().removesuffix("\n").split("\n---\n")
PASSES: Final = Runs(False, "")
RM: Final = command_matcher("rm *")


@pytest.mark.slow
def test_no_spelling_passes() -> None:
    assert len(SPELLINGS) > 3000
    assert [line for line in SPELLINGS if RM(line, WorkBudget()) == PASSES] == []


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("foo rm x", "rm *"), ("foo -p x git push --force", "git push:*"), ("foo --run='rm -fr x'", "rm -rf *"),
        ("foo -c 'cd a; rm x'", "rm *"), ("foo <<E\nRUN rm x\nE", "rm *"), ("foo --exec=curl x", "curl *"),
        ("./dev sh git push -f origin", "git push --force:*"), ("foo 'sudo rm x'", "rm *"),
        ("foo '[\"rm\", \"x\"]'", "rm *"),
        ("foo /bin/rm x", "rm *"), ("foo mkfs.ext4 x", "mkfs*"), ("foo bar -- kubectl delete x", "kubectl delete *"),
        ("foo -c 'env -i rm x'", "rm *"), ("foo -c 'if a; then rm x; fi'", "rm *"), ("foo -c 'ls | xargs rm'", "rm *"),
        ("foo --run='timeout 5 git push -f'", "git push --force:*"), ("foo --eval:'exec \"rm x\"'", "rm *"),
        ("foo --input-commands='run rm x'", "rm *"), ("foo ':spawn rm x'", "rm *"), ("foo -c 'shell rm x'", "rm *"),
    ],
)  # fmt: skip
def test_an_unknown_program_may_start_what_it_is_given(line: str, rule: str) -> None:
    answer = command_matcher(rule)(line, WorkBudget())
    assert not answer.certain
    assert "may start what it is given" in answer.unreadable


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("apt-get install -y curl git", "curl *"), ("brew install git", "git push:*"), ("man rm", "rm *"),
        ("systemctl restart docker", "docker *"), ("echo rm x", "rm *"),
        ("grep -rn 'rm -rf' .", "rm -rf *"),
        ("git commit -m 'rm x'", "rm *"), ("gh pr create --title 'Remove rm usage'", "rm *"),
        ("foo --name=rmx", "rm *"),
        ("cat <<'E' > a.md\nrm x\nE", "rm *"), ("mkdir rm; cd rm", "rm *"), ("foo -m 'do not use the rm of x'", "rm *"),
        ("docker rm x", "rm *"), ("docker run --name rm a ls", "rm *"), ("foo git status", "git push:*"),
        ("foo rm.py", "rm *"),
        ("foo push git", "git push:*"), ("NODE_OPTIONS=-a npm ci", "node *"),
        ("LESS=-R git log", "less *"), ("GOFLAGS=-mod=mod go test ./...", "go build *"),
        ("flatpak install curl", "curl *"),
    ],
)  # fmt: skip
def test_names_that_are_data_are_not_commands(line: str, rule: str) -> None:
    assert command_matcher(rule)(line, WorkBudget()) == PASSES


@pytest.mark.parametrize(
    "line",
    [
        "cat > a.py <<'E'\nprint('rm x')\nE\npython a.py", "cat > a.sh <<'E'\necho hi\nE\nchmod +x a.sh && ./a.sh",
        "printf 'all:\\n\\techo a\\n' > Makefile; make",
        "cat > Makefile <<'E'\nall:\n\tgcc $(CFLAGS) -o $@ $<\nE\nmake all",
        "awk '{print}' a > b.txt; cat b.txt", "rsync -a -e 'ssh -p 1' a h:b", "ls > out.txt; less out.txt",
        "python -c 'import json; print(json.dumps(1))'", "python -c \"import os; print(os.environ.get('A'))\"",
        "python -c 'print(getattr(1, \"real\"))'", "python - <<'E'\nimport re\nprint(re.compile('a'))\nE",
        "python -c 'import subprocess; print(subprocess.run([\"ls\", \"a\"], check=True))'",
        "git log -1; sed -n 1p run.sh; sh run.sh",
        "python -m json.tool < a", "make -f Makefile.in a", "awk -f sum.awk data", "sed -f fix.sed a", "vim +10 a.c",
        "LESS=-R git log", "NODE_OPTIONS=--max-old-space-size=4096 npm run build", "sqlite3 a.db .tables",
        "gdb -batch -ex bt -ex 'info locals' ./a core", "ssh -F cfg h uptime", "docker build -f Dockerfile .",
    ],
)  # fmt: skip
def test_what_can_be_read_is_read(line: str) -> None:
    assert not commands_of(line).unreadable
    assert RM(line, WorkBudget()) == PASSES


@pytest.mark.parametrize(
    "line",
    [
        "cat > a.py <<'E'\nimport os; os.system('rm x')\nE\npython a.py", "printf 'all:\\n\\trm x\\n' > mk; make -f mk",
        "cat > Makefile <<'E'\nC = rm\nall:\n\t@$(C) x\nE\nmake", "make -f - <<'E'\na:\n\trm x\nE",
        "python -c 'import subprocess as s; s.run([\"rm\", p])'", "python -m timeit 'import os; os.system(\"rm x\")'",
        "awk -f - <<< 'BEGIN{system(\"rm x\")}'", "sed -f - a <<< '1e rm x'", "bash ./rm x", "node rm x",
        "docker build - <<E\nFROM a\nRUN rm x\nE", "gdb -ex 'shell rm x'", "sudo -s 'rm x'",
        "TAR_OPTIONS=-Irm tar cf a b",
        "GIT_CONFIG_PARAMETERS=\"'alias.x=!rm x'\" git x",
    ],
)  # fmt: skip
def test_what_is_certain_is_refused_not_asked(line: str) -> None:
    assert RM(line, WorkBudget()).certain


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("su -c 'a | rm x'", "rm *"), ("hyperfine -p 'a || rm x' b", "rm *"), ("LESSOPEN='|a | rm x' less f", "rm *"),
        ("tar --checkpoint-action='exec=a | rm x' cf a b", "rm *"), ("tmux new 'a - | rm x; b=1'", "rm *"),
        ("git rebase -x 'git push -f' a", "git push --force:*"), ("nix-shell --run 'rm -rf x'", "rm -rf *"),
        ("git -c alias.p='push --force' p", "git push --force:*"), ("git -c alias.p=push p -f", "git push --force:*"),
        ("git -c alias.p='!git push' p -f", "git push --force:*"),
        ("git config alias.p 'push -f'; git p", "git push:*"),
        ("curl.exe x", "curl *"), ("sudo -s git push -f", "git push --force:*"),
        ("doas -s git push", "git push:*"), ("sudo -iu a git push x", "git push:*"),
        ("tar --checkpoint --checkpoint-action=exec='rm x' -cf a b", "rm *"),
        ("zip -TT'rm x' a b", "rm *"), ("node -e 'require(\"child_process\").exec(\"rm\\tx\")'", "rm *"),
        ("bash -oc posix 'rm x'", "rm *"), ("env 1=2 rm x", "rm *"),
        ("env -- A=b rm x", "rm *"), ("env =-S rm x", "rm *"), ("env 'A B=c' rm x", "rm *"),
    ],
)  # fmt: skip
def test_a_value_is_read_whole(line: str, rule: str) -> None:
    assert command_matcher(rule)(line, WorkBudget()).certain


@pytest.mark.parametrize("rule", ["rm *", "*rm*", "rm -rf *"])
@pytest.mark.parametrize(
    "line",
    [
        "sed '\\x" + "\\" * 2000 + "'",
        "awk '" + " #" * 20_000 + "\"'", "awk '" + ' # "\n' * 6000 + "'", "perl -e '" + "q(" * 10_000 + "'",
        "foo " + "--a=rm " * 900, "make -f - <<'E'\n" + "a:" * 15_000 + "\nE", "foo '" + "(rm(rm(rm " * 5000 + "'",
        'GIT_CONFIG_PARAMETERS="' + "'a.b=c' " * 5000 + '" git x', "foo '" + "/" * 30_000 + "'",
        "; ".join(f"python3 -c 'import os; os.system(\"a{at}\")'" for at in range(500)),
        "foo <<E\n" + "\n" * 30_000 + "E",
        "python3 -c '" + "-" * 15_000 + "1'", "python3 -c '" + "(" * 5000 + "'", "bash -" + "oc" * 4000 + " rm",
    ],
    ids=range(14),
)  # fmt: skip
def test_no_line_takes_long(line: str, rule: str) -> None:
    matcher = command_matcher(rule)
    matcher("ls $x; python -c 1", WorkBudget())  # loads the grammars
    before = process_time()
    matcher(line, WorkBudget())
    assert process_time() - before < 0.25  # a slow machine; the worst takes 50 ms, and some took seconds
