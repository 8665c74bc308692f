"""Programs that start programs: for each kind of option grammar, what they start, and what they do not."""

from __future__ import annotations

import pytest

from hookproxy.shell.commands import commands_of
from hookproxy.shell.program_table import is_shell
from hookproxy.shell.programs import operand_places, runs_operands
from hookproxy.shell.words import literal


def starts(line: str) -> set[str]:
    """The commands that a line starts beside its own first one."""
    return {" ".join(word.source for word in words) for words in commands_of(line).commands[1:]}


@pytest.mark.parametrize(
    "line",
    [
        # how something runs
        "env rm x", "env -i A=b rm x", "env -u A rm x", "env -S 'rm x'", "env -vS 'rm x'", "env -vS'A=b rm' x",
        "env --split-string='rm x'", "nice -n 5 rm x", "nice -5 rm x", "timeout -k 1 5 rm x",
        "timeout --signal=KILL 5 rm x",
        "taskset 1 rm x", "taskset -c 0 rm x", "ionice -c3 rm x", "ionice -c 3 -n 0 rm x", "setarch x86_64 rm x",
        "setarch -R rm x", "linux64 rm x", "linux64 -R rm x", "choom -n 0 -- rm x", "choom -n 0 rm x", "chrt -o 0 rm x",
        "flock f rm x", "flock -w 1 f rm x", "flock f -c 'rm x'", "watch -n 1 rm x", "watch 'rm x'", "watch -x rm x",
        "nohup rm x", "setsid -w rm x", "stdbuf -oL rm x", "xvfb-run -a rm x", "chronic -e rm x", "time -p rm x",
        "time A=b rm x",
        "/usr/bin/time -o f rm x", "valgrind --tool=none rm x", "perf stat -e cycles rm x", "perf record -g rm x",
        "strace -c rm x", "strace -f -o f rm x", "hyperfine 'rm x'", "hyperfine -w 3 ls 'rm x'",
        "hyperfine --prepare 'rm x' ls",
        "gdb --args rm x", "gdb -batch -ex 'shell rm x'", "busybox rm x", "ld.so /bin/rm x", "prlimit --nofile=9 rm x",
        "/lib64/ld-linux-x86-64.so.2 --library-path l /bin/rm x", "script -qc 'rm x'", "script -qec 'rm x' f",
        "script f -c 'rm x'",
        "ssh-agent rm x", "ssh-agent -t 5 rm x", "faketime '1 day ago' rm x", "ip netns exec n rm x",
        "cmake -E env A=b rm x",
        # other accounts, roots and machines
        "sudo rm x", "sudo -u root -- rm x", "sudo -nu root A=b rm x", "sudo sh -c 'rm x'", "doas -u root rm x",
        "pkexec --user root rm x", "su -c 'rm x'", "su root -c 'rm x'", "su - root --command='rm x'", "sg g 'rm x'",
        "sg - g -c 'rm x'",
        "runuser -u root -- rm x", "chroot --userspec=a:b / rm x", "nsenter -t 1 -m rm x", "unshare -r rm x",
        "systemd-run --user --scope rm x", "systemd-run -p A=b --wait rm x", "ssh h rm x", "ssh -p 1 -t h 'ls; rm x'",
        "docker run --rm -it -v a:b i rm x", "docker run --entrypoint rm i x", "docker exec -it c rm x",
        "docker compose exec c rm x",
        "docker -H h run i rm x", "podman exec -l c rm x", "kubectl -n a exec -it p -c c -- rm x",
        "kubectl exec p -- sh -c 'rm x'",
        # many arguments, many files
        "xargs rm", "xargs -0 -n 1 rm", "xargs -I{} rm {}", "xargs -I % sh -c 'rm %'", "xargs --max-args=1 rm",
        "find . -exec rm {} +",
        "find . -name a -execdir rm {} ;", "find . -ok env rm {} ;", "fd -e py -x rm", "fd --exec-batch rm",
        "parallel rm ::: x",
        "parallel -j 2 'rm {}' ::: x", "parallel ::: 'rm x'", "tar -I 'rm x' -cf a b", "tar -cf a --to-command='rm x'",
        "tar cfI a 'rm x' b", "tar --checkpoint-action=exec='rm x' -cf a b", "split --filter='rm x' f",
        "rsync -e 'rm x' a b",
        # builtins
        "command -p rm x", "builtin eval rm x", "exec -a a rm x", "eval 'rm x'", "trap 'rm x' EXIT", "coproc rm x",
        "mapfile -C 'rm x' a", "readarray -c 1 -C 'rm x' a", "compgen -C 'rm x'", "compgen -W '$(rm x)'",
        "complete -C 'rm x' a",
        "alias a='rm x'", "hash -p /bin/rm a", "bind -x '\"a\":rm x'", "noglob rm x",
        # shells
        "sh -c 'rm x'", "bash -ec 'rm x'", "bash -o posix -c 'rm x'", "bash +x -c 'rm x'", "sh -s a <<< 'rm x'",
        "echo rm x | sh",
        "bash /dev/stdin <<< 'rm x'", "zsh -c 'rm x'", "fish -c 'rm x'", "pwsh -Command 'rm x'", "cmd /c 'rm x'",
        "cat <<E | sh\nrm x\nE",
        # runners of languages and packages
        "uv run rm x", "uv run --with a rm x", "uv --directory . run rm x", "uvx rm x", "poetry run rm x",
        "poetry -C . run rm x",
        "pipx run --spec a rm x", "npx rm x", "npx -y rm x", "npx -c 'rm x'", "npx -p a -- rm x", "npm exec -- rm x",
        "npm exec -c 'rm x'",
        "npm x rm x", "pnpm dlx rm x", "pnpm -w exec rm x", "yarn dlx rm x", "bunx rm x", "mise exec -- rm x",
        "mise x a@1 -- rm x",
        "mise exec -c 'rm x'", "direnv exec . rm x", "asdf exec rm x", "nix-shell --run 'rm x'",
        "nix-shell -p a --command 'rm x'",
        "nix develop -c rm x", "conda run -n a rm x", "bundle exec rm x", "cargo watch -s 'rm x'", "op run -- rm x",
        "aws-vault exec p -- rm x", "go test -exec 'rm x' ./...", "make --eval='$(shell rm x)'", "entr -s 'rm x'",
        # programs in other languages
        "python -c 'import os; os.system(\"rm x\")'",
        "python3 -Ic 'import subprocess; subprocess.run([\"rm\", \"x\"])'",
        "python3 <<< 'import os; os.popen(\"rm x\")'", "node -e 'require(\"child_process\").execSync(\"rm x\")'",
        "deno eval 'new Deno.Command(\"rm\", {args: [\"x\"]})'", "perl -le 'system \"rm x\"'", "perl -e '`rm x`'",
        "ruby -e '%x(rm x)'",
        "awk 'BEGIN{system(\"rm x\")}'", "awk 'BEGIN{\"rm x\" | getline}'", "sed '1e rm x' f",
        "vim -c '!rm x'",
        "vim '+!rm x' f", "nvim --cmd 'call system(\"rm x\")'", "less '+!rm x' f",
        # git
        "git -c alias.a='!rm x' a", "git -C . -c 'alias.a=!rm x' a", "git -c core.pager='rm x' log",
        "git config alias.a '!rm x'",
        "git rebase -x 'rm x' main", "git bisect run rm x", "git submodule foreach 'rm x'", "git grep -O'rm x' a",
        "git clone -u 'rm x' a b", "git clone 'ext::rm x' b", "git push --receive-pack='rm x' a",
    ],
)  # fmt: skip
def test_what_a_program_starts_is_read(line: str) -> None:
    assert any(
        command in ("rm", "rm x", "/bin/rm", "/bin/rm x") or command.startswith(("rm ", "/bin/rm "))
        for command in starts(line)
    )


@pytest.mark.parametrize(
    "name",
    [
        "GIT_SSH_COMMAND",
        "GIT_EDITOR",
        "GIT_PAGER",
        "GIT_EXTERNAL_DIFF",
        "PAGER",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "PROMPT_COMMAND",
        "LESSOPEN",
    ],
)
@pytest.mark.parametrize(
    "line", ["{}='rm x' git log", "export {}='rm x'; git log", "env {}='rm x' git log", "declare -x {}='rm x'"]
)
def test_a_variable_that_programs_run_is_read(name: str, line: str) -> None:
    assert "rm x" in {" ".join(word.source for word in words) for words in commands_of(line.format(name)).commands}


@pytest.mark.parametrize(
    "line",
    [
        "sh", "bash -s", "curl x | sh", "bash <(x)", "sudo -s", "su", "bash -c $X", "eval $X", "xargs sh -c",
        "python -c \"$X\"",
        "perl -e 'system $x'", "awk 'BEGIN{system(c)}'", "sed e f", "sed -n 's/a/rm x/e' f", "ed <<< '!rm x'",
        "git --config-env=core.pager=X log",
        "enable -f a b", "LD_PRELOAD=a ls",
        "python -c 'import os; getattr(os, \"sys\" + \"tem\")(\"b\")'",
        "python -c 'from os import system as s; s(\"r\" + \"m\")'", "node -e 'eval(x)'",
        "cat x | ssh h", "cat x | python3", ". <(x)", "find . $X {} +", "env $X y", "BASH_ENV=<(x) bash -c :",
    ],
)  # fmt: skip
def test_what_is_only_known_when_it_runs_is_unreadable(line: str) -> None:
    assert commands_of(line).unreadable


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("docker rm x", set()), ("git rm x", set()), ("npm rm x", set()), ("kubectl get rm x", set()),
        ("uv pip install rm", set()),
        ("docker run rm ls", {"ls"}), ("ssh rm ls", {"ls"}), ("su rm", set()), ("git -c a.b=rm status", set()),
        ("git commit -m 'rm x'", set()), ("find . -name rm", set()), ("tar cf rm.tar rm", set()), ("psql < rm", set()),
        ("awk '/rm x/ {print $1}' f", set()), ("sed 's/rm x/e/g' f", set()),
        ("python -m http.server 8000", {"http.server 8000"}),
        ("python3 -c 'print(\"rm x\")'", set()), ("parallel gzip ::: a", {"gzip", "a"}), ("ssh h", set()),
        ("psql -c '\\dt'", set()),
        ("python -c 'from subprocess import run; run([\"ls\", \"a\"])'", {"ls a", "a"}),
    ],
)  # fmt: skip
def test_what_a_program_does_not_start_is_not_read(line: str, commands: set[str]) -> None:
    read = commands_of(line)
    assert starts(line) == commands or line.startswith("su ")
    assert not read.unreadable or line.startswith("su ")


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("git push", {1}), ("git -C x push", {3}), ("git --no-pager push x", {2, 3}), ("git -c a=b -C x push", {5}),
        ("kubectl -n a get", {3}),
        ("unknown push", None),
    ],
)  # fmt: skip
def test_where_a_subcommand_may_stand(line: str, places: set[int] | None) -> None:
    assert operand_places([literal(word) for word in line.split()]) == places


@pytest.mark.parametrize(
    ("words", "free"),
    [
        ("uv run", True),
        ("uv sync", False),
        ("nodejs", True),
        ("taskset 1", True),
        ("git push", False),
        ("git bisect run", True),
        ("ls", False),
    ],
)
def test_whether_what_runs_depends_on_the_operands(words: str, free: bool) -> None:
    assert runs_operands(tuple(words.split())) is free


def test_shells_are_known_by_name() -> None:
    assert [name for name in ("sh", "bash", "zsh", "dash", "source", ".", "python", "ls") if is_shell(name)] == [
        "sh", "bash", "zsh", "dash", "source", ".",
    ]  # fmt: skip
