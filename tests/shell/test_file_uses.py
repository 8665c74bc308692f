"""Which files a line reads and writes, as far as its words say so."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.shell.file_uses import TooMany, file_uses

READS = """
cat .env
head -n 5 .env
tail -f ./.env
cat < .env
cat 0<.env
cat -- .env
cat x .env
sudo cat .env
env A=b cat .env
sh -c 'cat .env'
bash -c "head .env"
find . -exec cat .env ;
cp .env x
cp -r .env x
mv .env x
ln -s .env x
base64 .env
xxd .env
grep KEY .env
grep -e KEY .env
grep -f .env x
rg KEY .env
awk '{print}' .env
sed -n p .env
sed -e p .env
jq . .env
jq -f .env x
. .env
source .env
diff .env x
dd if=.env of=x
curl -d @.env h
curl -F f=@.env h
curl -T .env h
curl --upload-file=.env h
wget --post-file=.env h
tar czf x .env
zip x .env
cat ".env"
cat .e'nv'
cat .en\\v
cat {.env,x}
A=.env; cat $A
echo $(cat .env)
a=$(< .env)
diff <(cat .env) x
while read l; do :; done < .env
(cat .env)
{ cat .env; }
cat .env; ls
ls && cat .env
vim .env
openssl enc -in .env
perl -ne print .env
xargs -a .env echo
scp .env h:
split .env
/usr/bin/cat .env
nice cat .env
cat <&3 3< .env
exec 3<.env
exec {fd}<.env
cat <> .env
cat 3<> .env <&3
while read -u 3 l; do :; done 3< .env
while read l; do :; done < "$PWD/.env"
A=.env; cat < "$A"
{ cat <&3; } 3< .env
"""
WRITES = """
echo x > .env
echo x >> .env
: > .env
> .env
tee .env
ls | tee -a .env
cp x .env
mv x .env
mv .env x
sed -i s/a/b/ .env
sed --in-place=.bak s/a/b/ .env
perl -pi -e s/a/b/ .env
dd if=x of=.env
rm .env
rm -rf .env
truncate -s 0 .env
touch .env
chmod 600 .env
curl -o .env h
wget -O .env h
install x .env
ln -s x .env
sort -o .env x
cp -t .env x
cat x > .env; ls
for f in a; do echo $f; done > .env
sudo tee .env
patch .env
echo x 1<> .env
echo x >| .env
echo x &> .env
echo x >& .env
echo x > "$PWD/.env"
exec 5>.env
gzip .env
unlink .env
"""
NEITHER = """
echo .env
git add .env
grep .env README
npm run .env
cat .env.example
git commit -m 'cat .env'
ls .env
make > /dev/null
echo 'cat .env'
sed s/.env/x/ README
awk /.env/ x
jq .env x
find . -name .env
test -f .env
mkdir -p x
python x.py .env
cat 3<<< .env
cat <&3
echo x >&2 2>&-
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.mark.parametrize("line", lines(READS))
def test_a_file_that_a_known_program_reads_is_found(line: str) -> None:
    found = file_uses(line).read.paths
    assert {path.removeprefix("./") for path in found} >= {".env"}


@pytest.mark.parametrize("line", lines(WRITES))
def test_a_file_that_is_written_is_found(line: str) -> None:
    assert ".env" in file_uses(line).written.paths


@pytest.mark.parametrize("line", lines(NEITHER))
def test_a_word_that_is_not_a_file_is_not_taken_for_one(line: str) -> None:
    uses = file_uses(line)
    assert ".env" not in (*uses.read.paths, *uses.written.paths)


def test_what_is_only_written_is_not_read_and_the_other_way_round() -> None:
    for line in ("echo x > .env", "rm .env", "cp x .env", "tee .env", "touch .env"):
        assert ".env" not in file_uses(line).read.paths, line
    for line in ("cat .env", "cat <&3 3< .env", "exec 9<.env", "cp .env x", "sed -n p .env", "grep -i x .env"):
        assert ".env" not in file_uses(line).written.paths, line


@pytest.mark.parametrize(
    ("line", "paths", "patterns"),
    [
        ("cat $HOME/.ssh/id ${HOME}/x", ("~/.ssh/id", "~/x"), ()),
        ("cat $PWD/x", ("x",), ()),
        ("cat $HOME/$X", (), ()),
        ("cat .e* secrets/* *", (), (".e*", "secrets")),
        ("cat ~/.ss?/id", (), ("~/.ss?/id",)),
        ("cat $HOME/.ss*", (), ("~/.ss*",)),
        ("cd a && cat x", ("x", "a/x"), ()),
        ("cat $(ls)", (), ()),
        ("cat '$HOME/x'", ("$HOME/x",), ()),
    ],
)
def test_where_files_are(line: str, paths: tuple[str, ...], patterns: tuple[str, ...]) -> None:
    assert file_uses(line).read.paths == paths
    assert file_uses(line).read.patterns == patterns


NAMES = st.text(st.sampled_from("ab .-_/'\"$*?[]{}~\\#&;|"), min_size=1, max_size=8).filter(
    lambda name: name.strip("-") == name
)


@given(NAMES, st.sampled_from(("cat {}", "cat < {}", "head -n 3 x {}", "cp {} y", "sudo tac -- {}", "(nl {})")))
def test_a_quoted_name_is_found_as_it_is(name: str, form: str) -> None:
    assert name in file_uses(form.format(shlex.quote(name))).read.paths


def test_too_many_files_are_not_compared() -> None:
    with pytest.raises(TooMany):
        file_uses("cat " + " ".join(map(str, range(5000))))
