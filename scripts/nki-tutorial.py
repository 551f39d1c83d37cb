"""Writes the reports in docs/nki-tutorial.md: what `frontier nki run` says of each step today.

    PYTHONPATH=build/python python3 scripts/nki-tutorial.py          rewrites them
    PYTHONPATH=build/python python3 scripts/nki-tutorial.py --check  says which are not today's, exit code 1

A block of the page that begins with `$ frontier nki run FILE` is followed by selected lines of the report. After a
change to the clock, run this and read what the page says about the numbers.
"""

import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(TOP, "docs", "nki-tutorial.md")
BLOCK = re.compile(r"```text\n\$ frontier nki run (\S+) --timeline\n.*?```", re.S)
LINES = re.compile(r"^(\S.* on trn2|  (time|busy|work|DMA|timeline) |    \w+ +\|)")


def report(script):
    """The lines of the page for one step. Data are not needed for the time."""
    command = [sys.executable, "-m", "frontier_nki", "--timeline", "--timing-only", os.path.join(TOP, script)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    if done.returncode:
        sys.exit(f"{script}: {done.stderr}")
    lines = [line.rstrip() for line in done.stdout.splitlines() if LINES.match(line)]
    return f"```text\n$ frontier nki run {script} --timeline\n" + "\n".join(lines) + "\n```"


def main(arguments):
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    stale = []

    def renew(match):
        now = report(match.group(1))
        if now != match.group(0):
            stale.append(match.group(1))
        return now

    fresh = BLOCK.sub(renew, page)
    if arguments == ["--check"]:
        print("\n".join(f"{script}: the page has an old report" for script in stale) or "all reports are today's")
        return 1 if stale else 0
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(fresh)
    print(f"{len(stale)} reports renewed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
