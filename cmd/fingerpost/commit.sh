#!/bin/sh
# Commits the files that API writes have changed, and nothing else. Use it so:
#
#   fingerpost serve --after-write 'sh /path/to/commit.sh'
#
# Everything is prepared next to people's work, and put in place under git's own lock on the index if nothing has changed
# meanwhile. Where that cannot be now, it exits with an error, and fingerpost runs it again later. Hooks do not run.
set -eu

cd "$FINGERPOST_CONFIG"
# shellcheck disable=SC2046 # these are names of variables
unset $(git rev-parse --local-env-vars) GIT_AUTHOR_DATE GIT_COMMITTER_DATE
export GIT_AUTHOR_NAME=fingerpost GIT_AUTHOR_EMAIL=fingerpost@localhost
export GIT_COMMITTER_NAME=fingerpost GIT_COMMITTER_EMAIL=fingerpost@localhost
git() { command git -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }
fail() { echo "$1" >&2; exit 1; }

folder=$(git rev-parse --absolute-git-dir)
index=$folder/index
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# A checkout, pull or stash takes the lock several times: wait until nothing has come or gone in git's folder for 100 ms.
quiet() { : >"$tmp/mark" && sleep 0.1 && [ ! -e "$index.lock" ] && ! [ "$folder" -nt "$tmp/mark" ]; }
tries=0
until quiet; do
  tries=$((tries + 1))
  [ $tries -lt 30 ] || fail "git is at work, or has left $index.lock behind"
done

head=$(cat "$folder/HEAD")
[ ! -e "$index" ] || cp -p "$index" "$tmp/before"
for mark in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do
  [ ! -e "$folder/$mark" ] || fail "a merge, rebase, cherry-pick or revert is not finished ($mark)"
done
branch=$(git symbolic-ref -q HEAD) || fail "HEAD is detached: check out a branch"
old=$(git rev-parse -q --verify HEAD) || old= # no commit yet
was=$(git rev-parse -q --verify "$old^{tree}") || was=$(git hash-object -t tree /dev/null)

# The commit is made from HEAD and these files alone, in an index of its own.
(export GIT_INDEX_FILE="$tmp/ours" && git read-tree "$was" &&
  printf '%s\n' "$FINGERPOST_PATHS" | tr '\n' '\0' | git update-index -z --add --remove --stdin)
tree=$(export GIT_INDEX_FILE="$tmp/ours" && git write-tree)
# Changed files that a stash holds for a moment look as in HEAD: nothing is done for good while git is at work.
undisturbed() {
  for file in "$folder" "$folder/FETCH_HEAD" "$folder/ORIG_HEAD"; do
    ! [ "$file" -nt "$tmp/mark" ] || fail "git was at work meanwhile"
  done
}
if [ "$tree" = "$was" ]; then
  undisturbed
  exit 0
fi
new=$(git commit-tree "$tree" ${old:+-p "$old"} -m "written by $FINGERPOST_KEYS" -m "$FINGERPOST_PATHS" -m "Requests: $FINGERPOST_REQUEST_IDS")

# The index that people use gets the same entries: their next commit would take the files back otherwise.
[ ! -e "$index" ] || cp -p "$tmp/before" "$tmp/after"
(export GIT_INDEX_FILE="$tmp/after" &&
  git diff-tree -r "$was" "$tree" | sed 's/^:[0-9]* \([0-9]*\) [0-9a-f]* \([0-9a-f]*\) [A-Z]/\1 \2/' | git update-index --index-info &&
  { git update-index -q --refresh >/dev/null || :; })

undisturbed
(set -C && : >"$index.lock") 2>"$tmp/why" || fail "git is at work: $index.lock exists"
trap 'rm -rf "$tmp" "$index.fingerpost" "$index.lock"' EXIT
[ "$(cat "$folder/HEAD")" = "$head" ] || fail "another branch was checked out meanwhile"
[ ! -e "$index" ] || cmp -s "$index" "$tmp/before" || fail "git was at work meanwhile"
# The index comes first: a git that asks for no lock then sees files that are staged, never files that are taken back.
place() { cp -p "$1" "$index.fingerpost" && mv "$index.fingerpost" "$index"; }
place "$tmp/after"
if ! git update-ref -m "commit: written by $FINGERPOST_KEYS" "$branch" "$new" "$old"; then # the branch has moved
  if [ -e "$tmp/before" ]; then place "$tmp/before"; else rm "$index"; fi
  exit 1
fi
rm "$index.lock"
trap 'rm -rf "$tmp"' EXIT
git gc --auto --quiet || :
