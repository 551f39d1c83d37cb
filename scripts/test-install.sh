#!/bin/bash
# scripts/test-install.sh: an installed Frontier works without its source tree: files, pkg-config, man page, completion, the
# command, building a submission, uninstalling. Uses DESTDIR, touches nothing outside a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
make -s install DESTDIR="$root" PREFIX=/usr
cd "$root"
for file in bin/frontier lib/frontier/libfrontier.a lib/frontier/libfrontier-cli.a lib/pkgconfig/frontier.pc include/frontier/frontier.h \
    share/man/man1/frontier.1 share/bash-completion/completions/frontier share/frontier/recipes/baseline.toml; do
    [ -s "usr/$file" ] || { echo "missing after install: $file"; exit 1; }
done
usr/bin/frontier --version >/dev/null
cp -r "$top/baseline" mine
usr/bin/frontier build mine --out mine/program >/dev/null
mine/program --version >/dev/null
cat >ten.c <<'END'
#include <frontier/frontier.h>
int main(void)
{
    fr_error error = {0};
    fr_recipe recipe;
    fr_model_size size;
    if (fr_recipe_defaults(&recipe, &error) != FR_OK || fr_model_measure(&recipe, 8192, &size, &error) != FR_OK)
        return 1;
    return size.params == 59637780 ? 0 : 2;
}
END
if command -v pkg-config >/dev/null; then
    flags=$(PKG_CONFIG_PATH=$root/usr/lib/pkgconfig pkg-config --define-variable=prefix="$root/usr" --cflags --libs frontier)
else # what the file says, read by hand
    flags="-I$root/usr/include -L$root/usr/lib/frontier $(sed -n 's/^Libs: -L[^ ]* //p' usr/lib/pkgconfig/frontier.pc)"
fi
# shellcheck disable=SC2086
${CC:-gcc} -std=c11 -Wall -Werror ten.c $flags -o ten
./ten
bash -n usr/share/bash-completion/completions/frontier
completed=$(bash -c 'source usr/share/bash-completion/completions/frontier; COMP_WORDS=(frontier train --bud); COMP_CWORD=2; _frontier; echo "${COMPREPLY[*]}"')
[ "$completed" = --budget ] || { echo "completion gave '$completed' for --bud"; exit 1; }
if command -v man >/dev/null && man --version 2>/dev/null | grep -q '^man '; then
    warnings=$(MANROFFSEQ='' LC_ALL=C.UTF-8 man --warnings -l usr/share/man/man1/frontier.1 2>&1 >page) || true
    [ -z "$warnings" ] || { echo "man page: $warnings"; exit 1; }
    grep -q 'frontier train' page
fi
cd "$top"
make -s uninstall DESTDIR="$root" PREFIX=/usr
[ -z "$(find "$root/usr" -type f)" ] || { echo "left after uninstall:"; find "$root/usr" -type f; exit 1; }
