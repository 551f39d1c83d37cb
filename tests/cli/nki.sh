# frontier nki: a kernel runs, is timed, breaks a rule, and the tables print.
[ -f "$TOP/${BUILD:-build}/python/frontier_nki/_core.abi3.so" ] || { echo "make nki has not been run"; exit 77; }
${FRONTIER_PYTHON:-python3} -c 'import numpy' 2>/dev/null || { echo "needs numpy: apt-get install python3-numpy"; exit 77; }
blank() { sed -E "s|$TOP|TOP|g; s/[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?/N/g"; } # the path first: it may have digits
echo "# the example, with the shape of its report"
frontier nki run "$TOP/examples/nki_add.py" | blank
frontier nki run "$TOP/examples/nki_add.py" --json --trace trace.json 2>/dev/null | tail -n 1 | grep -o '"predicted_us"' | head -n 1
head -c 1 trace.json; echo
frontier nki run "$TOP/examples/nki_add.py" --html page.html >/dev/null; head -c 15 page.html; grep -c 'nki_add.py' page.html
echo "# what a script is given, and its exit code"
printf 'import sys\nprint(sys.argv[1:])\nsys.exit(3)\n' >exits.py
frontier nki run exits.py -- --rows 4; echo "exit $?"
echo "# a broken rule names line, instruction, rule, values and fix"
cat >broken.py <<'PY'
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

@nki.jit
def broken(x):
    tile = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_copy(dst=tile[0:32, :], src=tile[16:48, :])

broken(np.zeros((128, 8), np.float32))
PY
frontier nki run broken.py; echo "exit $?"
echo "# an unknown machine, a missing script, an unknown instruction"
frontier nki run broken.py --machine trn9; echo "exit $?"
frontier nki run nothing.py; echo "exit $?"
frontier nki isa tensor_cpy; echo "exit $?"
echo "# what is not the kernel's fault: a folder for a script, a machine file of junk, pages that cannot be written"
mkdir folder; echo hi >junk.toml
frontier nki run folder; echo "exit $?"
frontier nki run broken.py --machine junk.toml; echo "exit $?"
for option in --html --trace; do
    frontier nki run "$TOP/examples/nki_add.py" $option folder 2>&1 >/dev/null; echo "exit $?"
    frontier nki run "$TOP/examples/nki_add.py" $option nowhere/file 2>&1 >/dev/null; echo "exit $?"
done
echo "# timing only"
frontier nki run "$TOP/examples/nki_add.py" --timing-only 2>/dev/null | grep -c 'time  '
for which in first none some; do frontier nki run "$TOP/examples/nki_add.py" --time $which 2>&1 | grep -c 'time  '; done
echo "# check"
printf 'def plus(x, y):\n    return x + y\ndef minus(x, y):\n    return x - y\n' >plus.py
frontier nki check "$TOP/examples/nki_add.py:add" --against plus.py:plus --shape 128x64,128x64 --dtype float32 --hidden 1 --seed 1 | blank
frontier nki check "$TOP/examples/nki_add.py:add" --against plus.py:minus --shape 128x64,128x64 --dtype float32 --hidden 0 --seed 1 | tail -n 1; echo "exit ${PIPESTATUS[0]}"
echo "# check: shapes that cannot be, a script that fails while read, a reference that raises"
for shape in axb 0x64 -1x2 '' 128x64, 99999999999x99999999; do
    frontier nki check "$TOP/examples/nki_add.py:add" --against plus.py:plus --shape="$shape" 2>&1; echo "exit $?"
done
echo 'raise ValueError("boom")' >boom.py
frontier nki check boom.py:add --against plus.py:plus 2>&1 | grep -v '^  File.*frozen\|check.py\|^    ' ; echo "exit ${PIPESTATUS[0]}"
frontier nki check nowhere.py:add --against plus.py:plus; echo "exit $?"
printf 'def plus(x, y):\n    raise ValueError("boom")\n' >raises.py
frontier nki check "$TOP/examples/nki_add.py:add" --against raises.py:plus --shape 128x64,128x64 --dtype float32 --hidden 0 --seed 1 | tail -n 2; echo "exit ${PIPESTATUS[0]}"
