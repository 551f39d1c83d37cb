"""python -m frontier_nki SCRIPT [args]: the command behind `frontier nki run`, compare, check and accept.

Runs a script as Python would, with `nki` and `neuronxcc.nki` served by the simulator, and reports on the
kernels it launched. What the script prints is left alone; under --json it goes to stderr and the last line
of stdout is the object.
"""

import argparse
import json
import os
import runpy
import sys
import traceback

try:
    import numpy  # noqa: F401
except ImportError:
    sys.exit(
        "frontier: error: numpy: this Python has no numpy, which kernels' inputs and outputs are\n"
        "  hint: apt-get install python3-numpy, or python3 -m pip install numpy"
    )

from . import _core, finder, report, session  # noqa: E402

OK, ANSWER_NO, USAGE, BAD_DATA, ENVIRONMENT = 0, 1, 2, 3, 4


def say(where, what, hint):
    """An error for people; what --json says of it."""
    sys.stderr.write(f"frontier: error: {where}: {what}\n  hint: {hint}\n")
    return {"what": what, "where": where, "hint": hint}


def fail(code, where, what, hint):
    error = say(where, what, hint)
    if report.json_mode:
        print(json.dumps({"error": error, "exit": code}, sort_keys=True))
    return code


def parser():
    p = argparse.ArgumentParser(prog="frontier nki run", allow_abbrev=False, add_help=False)
    p.add_argument("--machine")
    p.add_argument("--json", action="store_true")
    p.add_argument("--trace")
    p.add_argument("--html")
    p.add_argument("--timeline", action="store_true")
    p.add_argument("--timing-only", action="store_true")
    p.add_argument("--time", choices=session.time_launches.CHOICES, default="all")
    p.add_argument("--unwritten", choices=["error", "nan"], default="error")
    p.add_argument("--backend", choices=["simulator", "aws"], default="simulator")
    p.add_argument("script")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    return p


def kernel_frames(error):
    """The traceback without this package's own frames."""
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if not f.filename.startswith(os.path.dirname(os.path.abspath(__file__)))
        and "runpy" not in f.filename
        and "<frozen" not in f.filename
    ]
    return "".join(traceback.format_list(frames[-3:]))


def run_script(path, arguments):
    """The script's exit code; its own exceptions are shown as Python shows them."""
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or OK
        print(leaving.code, file=sys.stderr)  # sys.exit("why"), as Python shows it
        return ANSWER_NO
    except (_core.RuleError, _core.UsageError) as error:
        sys.stderr.write(kernel_frames(error))
        text = str(error).split("\n  fix: ")
        report.error = say(
            "kernel", text[0], text[1] if len(text) > 1 else "frontier nki rules lists the rules"
        )
        return ANSWER_NO
    except session.OutputError as error:
        *told, code = error.args
        report.error = say(*told)
        return code
    except Exception:
        traceback.print_exc()
        return ANSWER_NO
    return OK


def machine_problem():
    """None, or (exit code, where, what, hint): the machine is asked for before any script runs."""
    try:
        name, path = session.target()
    except _core.UsageError as error:
        return USAGE, "--machine", str(error), "frontier nki run SCRIPT --machine trn2"
    try:
        _core.Core(path)
    except _core.UsageError as error:
        return error.status, error.where, error.what, error.hint or "copy one of machines/*.toml and edit it"
    return None


def announce_aws(backend):
    where = finder.aws_package()
    if backend == "aws":
        return where is not None
    if where:
        report.note(
            f"AWS's own package is installed ({where}); the simulator runs, --backend aws uses theirs"
        )
    return True


def finish(code, out):
    machines = {
        name: _core.Core(session.machine_named(name)[1]).machine
        for name in {r.machine for r in session.results}
    }
    if report.json_mode:
        answer = report.as_json(session.results, machines)
        answer["exit"] = code
        if report.error:
            answer["error"] = report.error
        print(json.dumps(answer, sort_keys=True), file=out)
    else:
        for result in session.results:
            report.print_result(result, machines[result.machine], out)
        if not session.results and code == OK and session.options.time != "none":
            report.note("the script launched no kernel")
    return code


def main(arguments):
    if arguments[:1] == ["accept"]:
        from .accept import main as accept

        return accept(arguments[1:])
    if arguments[:1] == ["compare"]:
        from . import compare

        return compare.main(arguments[1:])
    if arguments[:1] == ["check"]:
        from . import check

        return check.main(arguments[1:])
    options = parser().parse_args(arguments)
    report.json_mode = options.json
    session.options.machine, session.options.timing_only = options.machine, options.timing_only
    session.options.trace, session.options.html = options.trace, options.html
    session.options.unwritten, session.options.time = options.unwritten, options.time
    session.options.timeline = options.timeline
    if not os.path.isfile(options.script):
        what = "a folder, not a script" if os.path.isdir(options.script) else "no such script"
        return fail(BAD_DATA, options.script, what, "frontier nki run SCRIPT")
    if not announce_aws(options.backend):
        return fail(
            ENVIRONMENT,
            "--backend aws",
            "AWS's nki package is not installed in this Python",
            "leave --backend out to use the simulator",
        )
    out = sys.stdout
    if options.json:
        sys.stdout = sys.stderr
    if options.backend == "simulator":
        finder.install()
    problem = machine_problem()
    if problem:
        return fail(*problem)
    code = run_script(options.script, options.arguments)
    sys.stdout = out
    return finish(code, out)


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # like head: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = OK
    sys.exit(status)
