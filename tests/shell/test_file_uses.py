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
grep -rnex .env
grep -nf.env x
grep --fil=.env x
sed -nep .env
cp -t dir .env
cp -rt dir .env
cp --target-directory=dir .env
scp -P 22 .env h:
rsync -a .env h:
curl -sT.env h
curl -F 'f=<.env' h
curl file:///srv/a/.env
bash .env
sh ./.env
git diff --no-index /dev/null .env
git -C . grep -n x -- .env
git hash-object -w .env
gpg -o - -e .env
jq --arg a b . .env
find . -name .env -exec cat {} ;
find . -iname .env -print0 | xargs -0 grep x
find .env -exec cat {} +
echo .env | xargs cat
xargs cat <<< .env
for f in .env x; do cat "$f"; done
a=(x .env); cat "${a[@]}"
A=.env; B=$A; cat $B
A=.env; cat $A; A=x
f() { cat "$1"; }; f .env
sh -c 'cat "$1"' _ .env
set -- .env; cat "$@"
read f <<< .env; cat $f
echo .env | while read f; do cat "$f"; done
find . -name .env | while read f; do cat "$f"; done
for f in $(find . -name .env); do cat $f; done
cat $(echo .env)
cat "$(find . -name .env)"
test -f .env && cat $_
declare -A m=([k]=.env); cat ${m[k]}
git config -f .env -l
diff --to-file=.env x
cat "$DIR/.env"
cat $(git rev-parse --show-toplevel)/.env
cat `pwd`/.env
cat ~+/.env
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
cp -t. .env
cp x/.env .
curl -so.env h
sort -o.env x
sed -Ei s/a/b/ .env
sed --in-pl s/a/b/ .env
perl -i.bak -pe s/a/b/ .env
git diff --output=.env
find . -name .env -exec rm {} +
ed -s .env
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
grep -e .env README
grep -A 3 .env README
grep -r --exclude .env x .
tar czf x --exclude .env .
zip -r x . -x .env
perl -pe 's/.env//' x
bash x.sh .env
jq --arg a .env . x
rsync -a --exclude .env . h:
scp h:.env x
find . -not -name .env -exec cat {} +
find . -name .env -prune -o -exec cat {} +
git add .env
git rm --cached .env
git commit -m .env
docker run --env-file .env x
test -f .env && cat $X
[ -f .env ] || cp .env.example $(basename x)
ls .env; for f in *.md; do cat $f; done
echo x >&2 2>&-
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.mark.parametrize("line", lines(READS))
def test_a_file_that_a_known_program_reads_is_found(line: str) -> None:
    found = file_uses(line).read
    assert ".env" in {path.rpartition("/")[2] for path in (*found.paths, *found.patterns)}


@pytest.mark.parametrize("line", lines(WRITES))
def test_a_file_that_is_written_is_found(line: str) -> None:
    assert ".env" in {path.removeprefix("./") for path in file_uses(line).written.paths}


@pytest.mark.parametrize("line", lines(NEITHER))
def test_a_word_that_is_not_a_file_is_not_taken_for_one(line: str) -> None:
    uses = file_uses(line)
    assert ".env" not in (*uses.read.paths, *uses.written.paths)


def test_more_words_in_braces_than_are_read_are_found() -> None:
    assert ".env" in file_uses("cat {" + ",".join(f"a{number}" for number in range(99)) + ",.env}").read.paths


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
        ('cd "$HOME/a" && cat x', ("x", "~/a/x"), ()),
        ("cat secrets/$X /$X", (), ("secrets",)),
        ("cat a/$X/b$Y/c", (), ("a", "c")),
        ("cat $X/a/b? $X", (), ("a/b?",)),
        ("for f in s/*; do cat $f; done", (), ("s",)),
        ("find s t -name 'a*' -exec cat {} +", ("s", "t"), ("a*", "s/a*", "t/a*")),
        ("cp a h:b", ("a",), ()),
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


@pytest.mark.parametrize(
    "line",
    [
        "cat " + " ".join(f"a{number}" for number in range(3999)) + "; tac x{a..z} " + "b " * 100 + "; cd x",
        "".join(f"cd a{number};" for number in range(700)) + "cat a b c d e f g",
        "".join(f"A=a{number};" for number in range(200)) + "cat " + " ".join(f"$A$A{at}" for at in range(300)),
        "echo " + " ".join(map(str, range(500))) + " | xargs -I{} cat " + " ".join(f"{{}}{at}" for at in range(900)),
        "cp " + " ".join(f"-t t{at}" for at in range(400)) + " " + " ".join(f"f{at}" for at in range(400)),
    ],
)
def test_too_many_files_are_not_compared(line: str) -> None:
    with pytest.raises(TooMany):
        file_uses(line)
