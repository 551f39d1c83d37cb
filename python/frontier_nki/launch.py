"""@nki.jit: a kernel called with arrays runs on a simulated core and returns arrays.

A launch: arrays become HBM tensors, the Python of the kernel runs once per program of the grid - each
instruction is checked, computed and recorded as it is called - the returned tensors become arrays, the
clock replays the record.
"""

import functools
import inspect
import itertools

from . import _core, arrays, language_rules, pair, report, session
from .types import shared_hbm


class Kernel:
    """A function with @nki.jit. kernel[grid](...) sets the grid; inside a kernel it is a plain call."""

    def __init__(self, function, old=False, grid=(), **options):
        functools.update_wrapper(self, function)
        self.function, self.old, self.grid, self.options = function, old, grid, options

    func = property(lambda self: self.function)

    def __getitem__(self, grid):
        return type(self)(
            self.function, self.old, grid if isinstance(grid, tuple) else (grid,), **self.options
        )

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        if session.launch is not None:
            return self.function(*args, **kwargs)
        return run(self, args, kwargs)


def jit(function=None, **options):
    """As AWS's nki.jit; mode= and the compiler's options are accepted and change nothing here."""
    if function is None:
        return lambda f: jit(f, **options)
    return function if isinstance(function, Kernel) else Kernel(function, **options)


def simulate(kernel, *args, **kwargs):
    """nki.simulate(kernel)(arrays): here every launch is simulated, so this is the kernel itself."""
    return kernel if isinstance(kernel, Kernel) else Kernel(kernel)


def hbm_tensor(core, shape, dtype, name, kind):
    """A shared HBM tensor; a sixth dimension is a view, as tensors have five."""
    shape = tuple(shape)
    stored = (shape[0] * shape[1], *shape[2:]) if len(shape) == 6 else shape
    tile = core.tensor("hbm", dtype, stored, name, shared=True, type=kind)
    return tile if stored == shape else tile.reshape(shape)


class Inputs:
    """Arrays of a call as tensors; the same array twice is the same tensor."""

    def __init__(self, core, old):
        self.core, self.old, self.tiles, self.count, self.torch = core, old, {}, 0, False

    def convert(self, value, name):
        if isinstance(value, (tuple, list)):
            items = [self.convert(item, name) for item in value]
            if all(a is b for a, b in zip(items, value)):
                return value
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            items = {key: self.convert(item, key) for key, item in value.items()}
            return value if all(items[key] is value[key] for key in value) else items
        if not arrays.is_array(value):
            return value
        if id(value) not in self.tiles:
            self.tiles[id(value)] = (value, self.tensor(value, name))
        return self.tiles[id(value)][1]

    def tensor(self, value, name):
        self.torch = self.torch or arrays.is_torch(value)
        array, dtype = arrays.host_array(value)
        shape = array.shape or (1,)
        tile = hbm_tensor(self.core, shape, dtype, str(name), tile_type(self.old))
        if array.size:
            tile.write_tensor(arrays.raw_bytes(array))
        return tile

    def write_back(self):
        for value, tile in self.tiles.values():
            if tile.written:
                arrays.update(value, arrays.whole(tile).reshape(value.shape))


def tile_type(old):
    if old:
        from .old.tile import OldTile

        return OldTile
    return _core.Tile


def result_of(value, torch):
    if isinstance(value, (tuple, list)):
        return type(value)(result_of(item, torch) for item in value)
    if isinstance(value, dict):
        return {key: result_of(item, torch) for key, item in value.items()}
    if isinstance(value, _core.Tile):
        if value.memory != "hbm":
            raise _core.UsageError(
                f"the kernel returns '{value.name}' in {value.memory}: outputs live in HBM "
                f"(buffer=nl.shared_hbm)"
            )
        array = arrays.read(value)
        return arrays.to_torch(array) if torch else array
    return value


def grid_of(kernel):
    """(sizes of the program grid, physical cores)."""
    sizes, cores = [], 1
    for size in kernel.grid:
        cores = max(cores, getattr(size, "cores", 1))
        sizes.append(int(size))
    if not kernel.old:
        if len(sizes) > 1 or (sizes and sizes[0] not in (1, 2)):
            raise _core.UsageError(
                f"kernel{list(sizes)}: the launch grid of this style is the number of cores, 1 or 2"
            )
        cores = sizes[0] if sizes else 1
    return sizes, cores


def run(kernel, args, kwargs):
    name, path = session.target(kernel.options.get("platform_target"))
    sizes, cores = grid_of(kernel)
    if session.world is not None and cores > 1:
        raise _core.UsageError("ranks(...): a rank is one core (LNC 1); kernels on two cores run without ranks")
    core = _core.Core(path, cores)
    core.compute(not session.options.timing_only)
    inputs = Inputs(core, kernel.old)
    launch = session.launch = session.Launch(core, sizes, kernel.old)
    core.activate()
    try:
        if session.options.warnings and not kernel.old:
            language_rules.warn(kernel.function, report.note)
        args, kwargs = bind(kernel.function, inputs, args, kwargs)
        value = programs(kernel, launch, cores, args, kwargs)
        result = result_of(value, inputs.torch)
        inputs.write_back()
        finish(kernel, core, name, inputs)
    finally:
        session.launch = None
        _core.deactivate()
        _core.at(None)
    return result


def bind(function, inputs, args, kwargs):
    try:
        names = [p for p in inspect.signature(function).parameters]
    except (TypeError, ValueError):
        names = []
    args = tuple(
        inputs.convert(value, names[i] if i < len(names) else f"input{i}") for i, value in enumerate(args)
    )
    return args, {key: inputs.convert(value, key) for key, value in kwargs.items()}


def programs(kernel, launch, cores, args, kwargs):
    """The kernel's Python once per program of the grid; two cores of the dst-first style take turns."""

    def once():
        answer = kernel.function(*args, **kwargs)
        flush(launch)
        return answer

    launch.outputs = {}
    if cores == 2 and not launch.old:
        launch.pair = pair.Pair(launch, once)
        return launch.pair.run()
    value = None
    for program in itertools.product(*(range(size) for size in launch.grid)) if launch.grid else [()]:
        launch.program = program
        launch.position = 0  # output tensors are shared by all programs, matched by their order of allocation
        if cores > 1:
            launch.core.select(program[0] % cores)
        answer = once()
        value = answer if value is None else value
    return value


def flush(launch):
    if launch.pending is not None:
        launch.pending.settle()


def finish(kernel, core, machine, inputs):
    shapes = [tuple(tile.shape) for _, tile in inputs.tiles.values()]
    name = kernel.function.__name__
    dtypes = [str(tile.dtype) for _, tile in inputs.tiles.values()]
    if not session.timed(name, (machine, *session.launch.grid, *shapes, *dtypes)):
        return
    time, lines = core.time(), core.lines()
    if session.world is not None:
        name += f"@rank{session.world.close(time)}"
    taken = sum(1 for r in session.results if r.name.split("#")[0] == name)
    name = f"{name}#{taken + 1}" if taken else name
    timeline = core.timeline(session.TIMELINE_COLUMNS) if session.options.timeline else None
    session.results.append(
        session.Result(name, machine, time, sorted(lines, key=lambda l: -(l[2] + l[3])), shapes, timeline)
    )
    write_files(core, name)


def write_files(core, name):
    """--trace and --html; the second launch's files end in .2, and so on."""
    from . import report

    for what, path, write in (
        ("trace", session.options.trace, core.write_trace),
        ("page", session.options.html, lambda p: core.write_page(name, p)),
    ):
        if path:
            path = path if len(session.results) == 1 else f"{path}.{len(session.results)}"
            try:
                write(path)
            except _core.UsageError as error:
                raise session.OutputError(error.where, error.what, error.hint, error.status) from None
            report.note(f"{what} of {name}: {path}")


def shared_output(launch, shape, dtype, name):
    """A shared HBM tensor: programs of a launch that allocate in the same order get the same one."""
    key = launch.position
    launch.position += 1
    tile = launch.outputs.get(key)
    if tile is None or tuple(tile.shape) != tuple(shape):
        tile = hbm_tensor(launch.core, shape, dtype, name, tile_type(launch.old))
        launch.outputs[key] = tile
    return tile


__all__ = ["Kernel", "jit", "simulate", "run", "flush", "shared_output", "tile_type", "shared_hbm"]
