#!/bin/sh
# scripts/deps.sh [--all]: install what Frontier needs to build; with --all also what `make check-all` needs.
# Prints its plan first. Asks on a terminal. Never installs with NO_INSTALL=1 (exit 4 if something is missing).
# Needs no root when nothing is missing. apt installs; for dnf, pacman, apk and brew it prints package names.
set -eu

build_apt="gcc libc6-dev make git libdnnl-dev libpcre2-dev libjansson-dev libzstd-dev zlib1g-dev libsodium-dev libcurl4-openssl-dev libmicrohttpd-dev xz-utils python3 python3-dev python3-numpy"
check_apt="clang libclang-rt-14-dev python3 universal-ctags gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user debootstrap"

if [ "$(uname -s)" = Darwin ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "frontier: packages that the build needs, by package manager:"
    echo "  dnf install gcc make git onednn-devel pcre2-devel jansson-devel libzstd-devel zlib-devel libsodium-devel libcurl-devel libmicrohttpd-devel xz"
    echo "  pacman -S gcc make git onednn pcre2 jansson zstd zlib libsodium curl libmicrohttpd xz"
    echo "  apk add gcc musl-dev make git onednn-dev pcre2-dev jansson-dev zstd-dev zlib-dev libsodium-dev curl-dev libmicrohttpd-dev xz"
    echo "  brew install onednn pcre2 jansson zstd libsodium curl libmicrohttpd xz"
    exit 0
fi

wanted=$build_apt
[ "${1:-}" = --all ] && wanted="$build_apt $check_apt"
missing=
for package in $wanted; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ -z "$missing" ]; then
    echo "frontier: nothing to install"
    exit 0
fi

as_root=
if [ "$(id -u)" != 0 ]; then as_root=sudo; fi
echo "frontier: missing packages:$missing"
echo "frontier: plan: ${as_root:+$as_root }apt-get update; ${as_root:+$as_root }apt-get install -y --no-install-recommends$missing"
if [ "${NO_INSTALL:-0}" = 1 ]; then
    echo "frontier: NO_INSTALL=1, so nothing is installed; run the plan yourself" >&2
    exit 4
fi
if [ -n "$as_root" ] && ! command -v sudo >/dev/null 2>&1; then
    echo "frontier: not root and no sudo; run the plan as root" >&2
    exit 4
fi
if [ -t 0 ] && [ -t 1 ]; then
    printf 'Install these? [Y/n] '
    read -r answer
    case "$answer" in n*|N*) echo "frontier: nothing was installed"; exit 4 ;; esac
fi
$as_root apt-get update -q
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -q --no-install-recommends $missing
