# Sourced by run and campaign: steps with their times, and the programs that tests need.

times=$(mktemp)
logs=$(mktemp -d)
running=() # "PID NAME" of each step that runs next to others

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.0f", b - a }'; }

# step NAME COMMAND… runs a command; its failure ends the script.
step() {
  local name=$1 began
  shift
  began=$(now)
  printf '\n== %s\n' "$name"
  if "$@"; then printf '%6s s  %s\n' "$(since "$began")" "$name" >>"$times"
  else
    printf '%6s s  FAILED  %s\n' "$(since "$began")" "$name" >>"$times"
    return 1
  fi
}

# begin NAME COMMAND… is step next to others: join prints the output and fails if one has failed.
begin() {
  local name=$1
  (step "$@") >"$logs/${#running[@]}" 2>&1 &
  running+=("$! $name")
}

join() {
  local i pid name bad=()
  for ((i = 0; i < ${#running[@]}; i++)); do
    read -r pid name <<<"${running[$i]}"
    wait "$pid" || bad+=("$name")
    cat "$logs/$i"
  done
  running=()
  [ ${#bad[@]} -eq 0 ] || { printf 'failed: %s\n' "${bad[@]}" >&2; return 1; }
}

# table prints the time of each step. It runs at the end, also of a run that failed.
table() {
  local code=$?
  printf '\n== seconds of each step, %s in all\n' "$(since "$script_began")"
  cat "$times"
  rm -rf "$times" "$logs"
  return $code
}
script_began=$(now)
trap table EXIT

install() {
  apt-get install -qq -y --no-install-recommends "$@" >/dev/null || {
    apt-get update -qq && apt-get install -qq -y --no-install-recommends "$@" >/dev/null
  }
}

# unpacked PACKAGE COMMAND unpacks a package that must not be installed, unless its command is there, and prints its folder.
unpacked() {
  local dir
  dir=$(tool_dir)/$1
  if ! [ -x "$dir/$2" ]; then
    mkdir -p "$dir"
    chmod 755 "$dir"
    (cd "$dir" && { apt-get download -qq "$1" || { apt-get update -qq && apt-get download -qq "$1"; }; } >&2)
    dpkg -x "$dir/$1"_*.deb "$dir"
  fi
  echo "$dir"
}

# tools installs what tests break disks and system calls with, compare with, check rules with, and send mail to. A second
# run finds all.
tools() {
  local need missing=()
  for need in strace:strace losetup:mount mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs python3:python3 smtp-sink:postfix \
    saslpasswd2:sasl2-bin nginx:nginx caddy:caddy haproxy:haproxy \
    chromium:chromium ssh-keygen:openssh-client systemd-analyze:systemd ip:iproute2; do
    command -v "${need%:*}" >/dev/null || missing+=("${need#*:}")
  done
  # Postfix's ways to log in, what shows Exim a user of its own, and judges of SPF and DKIM.
  for need in libsasl2-modules libnss-wrapper python3-spf python3-dkim python3-dnspython; do
    dpkg -s $need >/dev/null 2>&1 || missing+=($need)
  done
  [ ${#missing[@]} -eq 0 ] || { echo "installing ${missing[*]}"; install "${missing[@]}"; }
  # promtool without Prometheus, which would start as a service.
  command -v promtool >/dev/null || unpacked prometheus usr/bin/promtool >/dev/null
  # Two mail servers cannot be installed together, and name servers would start as services at one port.
  for need in exim4-daemon-light:exim4 nsd:nsd knot:knotd unbound:unbound; do
    server "${need%:*}" "usr/sbin/${need#*:}"
  done
  program pebble github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1
  program caddy-2.11.9 github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
  [ -z "${FINGERPOST_FULL:-}" ] || program caddy-2.10.2 github.com/caddyserver/caddy/v2/cmd/caddy@v2.10.2
  module_program .ci/oidc oidc-provider
  npm_packages
}

# npm_packages installs the pinned packages of .ci/npm, once per state of the lock file. Tests find them by FINGERPOST_NPM.
npm_packages() {
  [ ! -d "$FINGERPOST_NPM/node_modules" ] || return 0
  local part=$FINGERPOST_NPM.part
  rm -rf "$part"
  mkdir -p "$part"
  cp .ci/npm/package.json .ci/npm/package-lock.json "$part/"
  npm ci --prefix "$part" --no-audit --no-fund --ignore-scripts --loglevel=error >/dev/null || return 1
  mv "$part" "$FINGERPOST_NPM"
}

# program NAME MODULE@VERSION builds a Go program that tests find in PATH by the name.
program() {
  local built
  built=$(go_tool "$2") || return 1
  mkdir -p "$(tool_dir)/bin"
  ln -sf "$built" "$(tool_dir)/bin/$1"
}

# module_program MODULE NAME builds the program of a module below .ci, once per state of its files; see program.
module_program() {
  local built
  built=$(tool_dir)/$2-$(cat "$1"/*.go "$1/go.mod" "$1/go.sum" | cksum | cut -d' ' -f1)
  [ -x "$built" ] || GOFLAGS=-mod=readonly go -C "$1" build -o "$built" . >&2 || return 1
  mkdir -p "$(tool_dir)/bin"
  ln -sf "$built" "$(tool_dir)/bin/$2"
}

# server PACKAGE COMMAND unpacks a server, unless it is there, and installs the libraries that it needs.
server() {
  local dir
  [ ! -x "$(tool_dir)/$1/$2" ] || return 0
  dir=$(unpacked "$1" "$2")
  # shellcheck disable=SC2046 # names of packages
  install $(dpkg -f "$dir/$1"_*.deb Depends | tr ',' '\n' | grep -oE '^ *lib[^ ]+')
}

# tool_dir is where this machine keeps linters and unpacked servers between runs; it is deleted with the machine, or by hand.
tool_dir() { echo "${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/fingerpost-ci"; }

# Servers are in folders that not everybody has in PATH.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin:$(tool_dir)/bin"
for name in exim4-daemon-light/usr/sbin nsd/usr/sbin knot/usr/sbin unbound/usr/sbin prometheus/usr/bin; do
  PATH+=":$(tool_dir)/$name"
done
FINGERPOST_NPM=$(tool_dir)/npm-$(cksum <.ci/npm/package-lock.json | cut -d' ' -f1)
export FINGERPOST_NPM
export DEBIAN_FRONTEND=noninteractive
# As in the README and in releases: Pebble's own compression in Go is as fast as the one in C, which takes a fifth of a build.
export CGO_ENABLED=0

# go_tool MODULE@VERSION builds a Go program once per machine and prints its path.
go_tool() {
  local dir name
  dir=$(tool_dir)/$(tr '/@' '__' <<<"$1")
  name=$(basename "${1%@*}")
  [ -x "$dir/$name" ] || GOFLAGS=-mod=mod GOBIN=$dir go install "$1" >&2
  echo "$dir/$name"
}

# module_tools MODULE… builds the programs of modules below .ci once per state of their go.sum, and prints their folder.
module_tools() {
  local module dir
  dir=$(tool_dir)/modules-$(cat .ci/tools/go.sum .ci/tools/validate/go.sum .ci/image/* | cksum | cut -d' ' -f1)
  mkdir -p "$dir"
  for module in "$@"; do
    [ -f "$dir/.$(basename "$module")" ] && continue
    case $module in
    .ci/image) GOFLAGS=-mod=readonly go -C "$module" build -o "$dir/image" . >&2 || return 1 ;;
    *) GOFLAGS=-mod=readonly go -C "$module" build -o "$dir/" tool >&2 || return 1 ;;
    esac
    touch "$dir/.$(basename "$module")"
  done
  echo "$dir"
}

golangci=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# formats checks what gofmt and "go mod tidy" would change.
formats() {
  local unformatted
  unformatted=$(gofmt -l .)
  [ -z "$unformatted" ] || { echo "not gofmt-ed:"; echo "$unformatted"; return 1; }
  go mod tidy -diff && go -C bench mod tidy -diff
}

linters() {
  local tool
  tool=$(go_tool "$golangci") || return 1
  "$tool" run ./... && (cd bench && "$tool" run -c ../.golangci.yml ./...)
}

# tests LABEL FOLDER ARGS… runs "go test -json ARGS" in a module, prints what failed, and the slowest tests.
tests() {
  local label=$1 folder=$2
  shift 2
  go -C "$folder" test -json "$@" | go run ./.ci/report.go -label "$label"
}

# base prints the commit that a change is compared with: $BASE, where this branch left the main one, the last tag, or the
# last commit that is older than a day.
base() {
  local head at
  head=$(git rev-parse HEAD)
  for at in "${BASE:-}" "$(git merge-base HEAD origin/main 2>/dev/null || true)" "$(git describe --tags --abbrev=0 2>/dev/null || true)" \
    "$(git rev-list -1 --before='24 hours ago' HEAD)" "$(git rev-list --max-parents=0 HEAD | tail -n 1)"; do
    [ -n "$at" ] && [ "$(git rev-parse "$at^{commit}")" != "$head" ] && { git rev-parse "$at^{commit}"; return; }
  done
  echo "$head"
}
