#!/bin/bash
# scripts/clean-root.sh: does the README's first minute work on a machine that has nothing? A minimal Debian 12 root is made
# with debootstrap in a temporary folder, with this machine's package sources; inside it: the README's first line, a clone,
# `make demo` with a short budget, `make check`. Needs root, debootstrap and the right to mount; otherwise exit 77 says what is
# missing. Mounts and folder are removed whatever happens.
set -euo pipefail
cd "$(dirname "$0")/.."
skip() { echo "$1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "a clean root needs root"
command -v debootstrap >/dev/null || skip "debootstrap is missing: make deps-all"
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
[ -n "$mirror" ] || mirror=$(sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) bookworm .*/\2/p' /etc/apt/sources.list 2>/dev/null | head -n 1)
[ -n "$mirror" ] || skip "no package source of Debian 12 is configured here"

root=$(mktemp -d /var/tmp/frontier-root.XXXXXX)
clean() {
    for at in proc sys dev; do umount -R -l "$root/$at" 2>/dev/null || true; done
    rm -f "$root.log" "$root.out"
    if grep -q " $root/" /proc/mounts; then echo "still mounted below $root; not removed" >&2; else rm -rf --one-file-system "$root"; fi
}
trap clean EXIT
trap 'exit 130' INT TERM
echo "making a minimal root"
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" >"$root.log" 2>&1 || {
    tail -n 3 "$root.log"; rm -f "$root.log"; skip "debootstrap could not make a root from this machine's package source"; }
rm -f "$root.log"
mkdir -p "$root/etc/apt/apt.conf.d" "$root/etc/apt/sources.list.d"
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
rm -f "$root/etc/apt/apt.conf.d/"*appstream* "$root/etc/apt/apt.conf.d/"*packagekit*
cp /etc/apt/sources.list.d/*.sources "$root/etc/apt/sources.list.d/" 2>/dev/null || true
[ -f /etc/apt/sources.list ] && cp /etc/apt/sources.list "$root/etc/apt/" || : >"$root/etc/apt/sources.list"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
cp -r /etc/ssl/certs "$root/etc/ssl/" 2>/dev/null || true
for at in proc sys dev; do mount --rbind "/$at" "$root/$at" 2>/dev/null || skip "no right to mount here"; mount --make-rslave "$root/$at"; done
git bundle create -q "$root/frontier.bundle" HEAD
cat >"$root/steps.sh" <<'END'
set -e
export DEBIAN_FRONTEND=noninteractive HOME=/root
apt-get update -q >/dev/null
apt-get install -y -q --no-install-recommends make git >/dev/null
git clone -q /frontier.bundle /frontier
cd /frontier
git checkout -q -B main FETCH_HEAD 2>/dev/null || true
DEMO_SECONDS=4 make demo </dev/null
echo "== make check"
make check
END
from=$SECONDS
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin $(env | grep -iE '^(https?|no)_proxy=' | tr '\n' ' ') \
    chroot "$root" bash /steps.sh >"$root.out" 2>&1 || {
    grep -E "^(not ok|#|frontier: error)" "$root.out"; tail -n 15 "$root.out"; rm -f "$root.out"; exit 1; }
grep -E 'val_bpb|^(next|not ok)' "$root.out" | head -n 5
tail -n 1 "$root.out"
rm -f "$root.out"
echo "a clean root took $((SECONDS - from)) s after debootstrap"
