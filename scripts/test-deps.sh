#!/bin/bash
# scripts/test-deps.sh: make deps prints its plan, installs nothing with NO_INSTALL=1, needs nobody's rights when nothing is
# missing, and tells package names where apt is not. Other machines are played by a PATH of small stand-ins.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
for tool in sh sed grep uname cat printf; do ln -s "$(command -v $tool || echo /bin/$tool)" "$bin/$tool" 2>/dev/null || true; done
fake() { rm -f "$bin/$1"; printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"; chmod +x "$bin/$1"; } # rm first: the name may be a link to the real tool
expect() { # status, text, description
    [ "$status" = "$1" ] && grep -q -- "$2" <<<"$output" || { echo "$3: exit $status, printed: $output"; exit 1; }
}
run() { set +e; output=$(env -i PATH="$bin" "$@" /bin/sh scripts/deps.sh </dev/null 2>&1); status=$?; set -e; }

run A=1
expect 0 'pacman -S' "without apt"
fake apt-get 'echo "apt-get was called: $*"; exit 0'
fake dpkg-query 'echo "install ok installed"'
fake id 'echo 1000'
run A=1
expect 0 'nothing to install' "nothing missing, no root"
fake dpkg-query 'exit 1'
run NO_INSTALL=1
expect 4 'plan:.*apt-get install' "NO_INSTALL=1"
grep -q 'was called' <<<"$output" && { echo "NO_INSTALL=1 installed something"; exit 1; }
run A=1
expect 4 'not root and no sudo' "something missing, no root"
fake id 'echo 0'
run A=1
expect 0 'apt-get was called: install -y' "root, no terminal"
