#!/bin/bash
# scripts/test-page.sh [FOLDER]: the timeline page of `nki run --html` in a real browser, headless: it draws, zooms, searches, tells what
# is under the pointer, follows a source line, fits a narrow window, and copes with a hundred thousand instructions
# (how quickly is printed, not judged).
# FOLDER keeps the screenshots. Chromium in PATH, or CHROMIUM names it; skipped by name without.
set -euo pipefail
cd "$(dirname "$0")/.."
B=${BUILD:-build}
browser=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
if [ -z "$browser" ] || [ ! -e "$B/python/frontier_nki/_core.abi3.so" ]; then
    echo "needs Chromium and \`make nki\`"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
keep=${1:-$work}
mkdir -p "$keep"
passed=0 failed=0

check() { # NAME CONDITION...: as test(1)
    local name=$1
    shift
    if "$@"; then passed=$((passed + 1)) && echo "ok - page.$name"; else failed=$((failed + 1)) && echo "not ok - page.$name"; fi
}
run() { # WIDTH PAGE OPTION...
    local width=$1 page=$2
    shift 2
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size="$width",900 \
        "$@" "file://$page" 2>>"$work/browser.log"
}

"$B/frontier" nki run examples/nki_tutorial/step5_matmul.py --timing-only --html "$work/page.html" >/dev/null 2>&1
cat >"$work/kernel.py" <<'END'
import nki, nki.isa as nisa, nki.language as nl
import numpy as np


@nki.jit
def long(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    for _ in range(55000):
        nisa.tensor_copy(dst=b, src=a)
        nisa.tensor_scalar(dst=a, data=b, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=a)
    return out


long(np.zeros((128, 64), np.float32))
END
"$B/frontier" nki run "$work/kernel.py" --timing-only --html "$work/long.html" >/dev/null 2>&1

# What a user does, as events; what is then seen goes into an element that --dump-dom prints.
cat >"$work/user.js" <<'END'
const told = {}, tell_ = (k, v) => { told[k] = v; };
const text = id => document.getElementById(id).textContent;
const point = (type, x, y, more) => canvas.dispatchEvent(new MouseEvent(type, { clientX: canvas.getBoundingClientRect().left + x,
    clientY: canvas.getBoundingClientRect().top + y, bubbles: true, ...more }));
const painted = () => { // colours of the middle of the first row, between the labels and the edge
    const ratio = devicePixelRatio || 1, data = ctx.getImageData(LEFT * ratio, (TOP + ROW / 2) * ratio, (canvas.clientWidth - LEFT - 8) * ratio, 1).data;
    const seen = new Set(); for (let i = 0; i < data.length; i += 4) seen.add(data.slice(i, i + 3).join()); return seen.size;
};
tell_('colours', painted());
const has = (colour, y, height) => { // whether a colour is in a band of the drawing
    const ratio = devicePixelRatio || 1, data = ctx.getImageData(LEFT * ratio, y * ratio, (canvas.clientWidth - LEFT - 8) * ratio, height * ratio).data;
    const wanted = [1, 3, 5].map(k => parseInt(colour.slice(k, k + 2), 16));
    for (let i = 0; i < data.length; i += 4) if (wanted.every((c, k) => Math.abs(c - data[i + k]) < 3)) return true;
    return false;
};
tell_('memories', D.memory.map(m => m.name).join(' '));
tell_('occupied', D.memory.map((m, k) => has(dark ? '#4a7a4a' : '#9ccc9c', TOP + shown.length * ROW + k * (MEM + 6), MEM)).join(' '));
tell_('dark', dark);
tell_('background', has(dark ? '#161616' : '#ffffff', 0, TOP) && getComputedStyle(document.documentElement).colorScheme === 'light dark');
const whole = t1 - t0, began = performance.now();
for (let k = 0; k < 5; k++) draw();
tell_('draw_ms', Math.round((performance.now() - began) / 5));
canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: -400, clientX: canvas.getBoundingClientRect().left + 400, clientY: 100, bubbles: true, cancelable: true }));
tell_('zoomed', (t1 - t0) < 0.5 * whole);
dispatchEvent(new KeyboardEvent('keydown', { key: '0' }));
tell_('whole_again', t0 === 0 && Math.abs(t1 - t0 - whole) < 1e-6 * whole);
point('mousemove', (LEFT + canvas.clientWidth) / 2, TOP + ROW / 2);
tell_('hover', text('tip'));
tell_('hover_marks', document.querySelectorAll('.marked').length);
const search = document.getElementById('search');
search.value = 'tensor_copy'; search.dispatchEvent(new Event('input'));
tell_('found', text('count'));
search.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
tell_('shown', text('count'));
document.querySelector('.busy').click();
tell_('followed', chosen >= 0);
tell_('legend', text('legend'));
tell_('sideways', document.documentElement.scrollWidth > innerWidth + 1);
tell_('below', document.querySelector('aside').getBoundingClientRect().top >= document.querySelector('main').getBoundingClientRect().bottom - 1);
const out = document.createElement('pre'); out.id = 'told';
out.textContent = Object.entries(told).map(([k, v]) => `told ${k}=${v}`).join('\n'); document.body.append(out);
END
played() { # PAGE WIDTH OPTION...: what the user saw
    { cat "$1" && echo "<script>" && cat "$work/user.js" && echo "</script>"; } >"$work/played.html"
    local width=$2
    shift 2
    run "$width" "$work/played.html" "$@" --dump-dom | grep -o 'told [a-z_]*=[^<]*' | sed 's/^told //'
}
value() { sed -n "s/^$1=//p" <<<"$seen"; }

seen=$(played "$work/page.html" 1400)
check draws test "$(value colours)" -gt 1
check zooms "$(value zoomed)"
check shows_all_again "$(value whole_again)"
check hover_names_the_instruction grep -q 'nc_matmul.*step5_matmul.py:' <<<"$(value hover)"
check hover_marks_the_line test "$(value hover_marks)" -eq 1
check search_counts test "$(value found)" = "64 found, Enter shows the next"
check search_goes_to_the_next test "$(value shown)" = "1 of 64"
check click_follows_a_line "$(value followed)"
check legend_tells_the_waits grep -q 'waits for a transfer' <<<"$(value legend)"
check memory_of_both test "$(value memories)" = "SBUF PSUM"
check memory_is_drawn test "$(value occupied)" = "true true"
check light_by_itself test "$(value dark) $(value background)" = "false true"
check source_beside test "$(value below)" = false
seen=$(played "$work/page.html" 620)
check narrow_source_below "$(value below)"
check narrow_not_sideways test "$(value sideways)" = false
seen=$(played "$work/page.html" 1400 --blink-settings=preferredColorScheme=0)
check dark_where_the_system_is test "$(value dark) $(value background) $(value occupied)" = "true true true true"
seen=$(played "$work/long.html" 1400)
check hundred_thousand_found test "$(value found)" = "55000 found, Enter shows the next"
echo "# one drawing of 110,002 instructions: $(value draw_ms) ms"
run 1400 "$work/page.html" --screenshot="$keep/page.png" >/dev/null
run 620 "$work/page.html" --screenshot="$keep/narrow.png" >/dev/null
run 1400 "$work/page.html" --screenshot="$keep/dark.png" --blink-settings=preferredColorScheme=0 >/dev/null
check screenshots test -s "$keep/page.png" -a -s "$keep/narrow.png"
echo "$passed passed, $failed failed, 0 skipped"
exit $((failed > 0))
