#!/bin/sh
# scripts/check-style.sh: the rules a reader relies on. Files under 1,000 lines that open with a comment; functions of 60
# lines at most; no process-ending or printing calls in the library; no fast-math; every public header compiles alone.
cd "$(dirname "$0")/.." || exit 2
status=0
fail() { echo "$1"; status=1; }
for f in $(git ls-files 'src/*.c' 'src/*.h' 'cli/*.c' 'include/*.h' 'tests/*.c' 'bench/*.c' 'examples/*.c' 'baseline/*.c'); do
    lines=$(wc -l <"$f")
    [ "$lines" -le 1000 ] || fail "$f: $lines lines, 1,000 at most"
    head -c 2 "$f" | grep -q '/\*' || fail "$f: does not open with a comment"
done
if command -v ctags >/dev/null 2>&1 && ctags --version | grep -q Universal; then
    long=$(git ls-files 'src/*.c' 'cli/*.c' | xargs ctags -x --_xformat='%n %e %N %F' --c-kinds=f 2>/dev/null | awk '$2 - $1 + 1 > 60 {print $4 ":" $1 ": " $3 " has " $2 - $1 + 1 " lines, 60 at most"}')
    [ -z "$long" ] || fail "$long"
fi
printing=$(git grep -nE '(^|[^_a-zA-Z])(exit|abort|printf|puts|perror)\(' -- 'src/*.c' | grep -vE '^[^:]+:[0-9]+:[ /]*\*')
[ -z "$printing" ] || fail "the library never prints or exits: $printing"
fast=$(git grep -nE -- '-ffast-math|-Ofast' -- Makefile 'src/*')
[ -z "$fast" ] || fail "no fast-math: $fast"
for h in include/frontier/*.h; do
    ${CC:-gcc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c "$h" -Wno-pragma-once-outside-header 2>/dev/null ||
        ${CC:-gcc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c "$h" || fail "$h does not compile alone"
done
exit $status
