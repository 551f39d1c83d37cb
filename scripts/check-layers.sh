#!/bin/sh
# The folder law: who may include whom. Arrows point down only, so a reader can learn the library from the bottom and a
# change at the top cannot break the bottom. Reads every #include in src/, cli/ and include/; prints each violation
# as path:line and exits 1 if there is one.
#
#   usage: scripts/check-layers.sh [ROOT]     ROOT defaults to the repository
#
# The table gives each module the modules it may include besides itself; its own public header is frontier/MODULE.h.
# Two deliberate holes: eval and neuron never see train (a score must not depend on how a model was made), and contest
# sees no model code at all (it starts processes; a contestant's code never runs in the one that scores).

root=${1:-$(dirname "$0")/..}
cd "$root" || exit 2
find src cli include -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs awk '
BEGIN {
    low = "base text graph cpu model"
    law["base"] = ""
    law["text"] = "base"
    law["graph"] = "base text"
    law["cpu"] = "base text graph"
    law["model"] = "base text graph cpu"
    law["eval"] = law["device"] = law["neuron"] = low
    law["train"] = low " eval"
    law["codesign"] = low " eval device neuron train"
    law["stats"] = low " eval device neuron train codesign"
    law["http"] = law["stats"]
    law["report"] = law["stats"] " stats"
    law["run"] = law["stats"] " stats report"
    law["submission"] = low " eval train"
    law["contest"] = "base text stats report http run"
    law["research"] = law["run"] " http run"
    law["cli"] = "*"
    owner["core"] = owner["causality"] = owner["scan"] = "eval" # further public headers of their module
    owner["formats"] = "model"
    owner["version"] = "base"
    violations = 0
}
function complain(text) { print FILENAME ":" FNR ": " text; violations++ }
function module_of_file(path, part) {
    split(path, part, "/")
    if (part[1] == "src") return part[2]
    if (part[1] == "cli") return "cli"
    sub(/\.h$/, "", part[3])
    return part[3] in owner ? owner[part[3]] : part[3]
}
function may_include(from, to, words, n, i) {
    if (from == to || law[from] == "*") return 1
    n = split(law[from], words, " ")
    for (i = 1; i <= n; i++) if (words[i] == to) return 1
    return 0
}
FNR == 1 { from = module_of_file(FILENAME) }
FILENAME == "include/frontier/frontier.h" { next } # the umbrella includes them all
/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    target = $0
    sub(/^[^"<]*["<]/, "", target)
    sub(/[">].*$/, "", target)
    quoted = $0 ~ /include[ \t]*"/
    if (target ~ /^\.\.?\// || (quoted && target !~ /\// && from != "cli")) {
        complain("include \"" target "\" by its module: \"module/file.h\"")
        next
    }
    split(target, part, "/")
    to = part[1]
    if (to == "frontier") {
        to = part[2]
        sub(/\.h$/, "", to)
        if (to in owner) to = owner[to]
        if (to == "frontier") {
            if (from != "cli") complain("the umbrella frontier.h is for programs; include the module headers used")
            next
        }
    } else if (!quoted) {
        next # a system or library header
    }
    if (!(from in law)) { complain("module " from " is not in the folder law (scripts/check-layers.sh)"); next }
    if (!(to in law)) { if (from != "cli") complain("module " to " is not in the folder law (scripts/check-layers.sh)"); next }
    if (!may_include(from, to)) complain(from " may not include " to " (" target ")")
}
END {
    if (violations) { print violations " violation" (violations > 1 ? "s" : "") " of the folder law"; exit 1 }
}' || exit 1
