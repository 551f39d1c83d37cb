/* time_unit.c: what the compute engines of a core do with an operation.
 *
 * Every engine is serial. Tensor loads the weights of the next product while it multiplies, so a load is
 * seen only when the engine had nothing to hide it behind; it loses a few cycles between products; and it
 * runs at a reduced rate for the first microseconds of work after being idle. Scalar loads the table of a
 * function as soon as it is free, before the inputs are there. A PSUM bank serves one engine at a time; on
 * the second generation so do two ports.
 *
 * Starting and running are separate: fr_neuron_units_start answers "how early", fr_neuron_units_run
 * commits.
 */
#include "neuron/time.h"

#include <string.h>

enum { RECENT = 512 }; /* activities of Tensor in a throttle window: 3 us of the shortest products are 112 */

fr_status fr_neuron_units_init(fr_neuron_units *units, const fr_neuron_machine *machine, fr_error *error)
{
    memset(units, 0, sizeof *units);
    units->machine = machine;
    units->busy_start = fr_allocate(sizeof *units->busy_start * RECENT);
    units->busy_end = fr_allocate(sizeof *units->busy_end * RECENT);
    if (units->busy_start && units->busy_end)
        return FR_OK;
    fr_neuron_units_release(units);
    return fr_error_memory(error, sizeof *units->busy_start * RECENT, "Tensor's recent activity");
}

void fr_neuron_units_release(fr_neuron_units *units)
{
    fr_deallocate(units->busy_start);
    fr_deallocate(units->busy_end);
    units->busy_start = units->busy_end = NULL;
}

/* ---- starting ------------------------------------------------------------------------------------- */

static void later(fr_neuron_start *start, double at, fr_neuron_stall stall)
{
    if (at <= start->at)
        return;
    start->lost += at - start->at;
    start->at = at;
    start->stall = stall;
}

static int port_of(const fr_neuron_machine *machine, const fr_neuron_op *op)
{
    if (op->dma)
        return -1;
    bool vector = op->queue == FR_NEURON_VECTOR;
    if (machine->vector_gpsimd_share_port && op->sbuf && (vector || op->queue == FR_NEURON_GPSIMD))
        return 0;
    return -1;
}

static int psum_port_of(const fr_neuron_machine *machine, const fr_neuron_op *op)
{
    bool sharing = op->queue == FR_NEURON_VECTOR || op->queue == FR_NEURON_SCALAR;
    return !op->dma && machine->vector_scalar_share_psum && op->banks && sharing ? 1 : -1;
}

static double locks(const fr_neuron_units *units, const fr_neuron_op *op)
{
    double at = 0;
    for (uint32_t banks = op->dma ? 0 : op->banks; banks; banks &= banks - 1) {
        int b = __builtin_ctz(banks);
        if (units->bank_owner[b] != op->queue && units->bank_free[b] > at)
            at = units->bank_free[b];
    }
    int ports[2] = {port_of(units->machine, op), psum_port_of(units->machine, op)};
    for (int i = 0; i < 2; i++)
        if (ports[i] >= 0 && units->port_owner[ports[i]] != op->queue && units->port_free[ports[i]] > at)
            at = units->port_free[ports[i]];
    return at;
}

fr_neuron_start fr_neuron_units_start(const fr_neuron_units *units, const fr_neuron_op *op, double ready)
{
    const fr_neuron_machine *machine = units->machine;
    double free = units->free[op->queue];
    fr_neuron_start start = {.at = free > ready ? free : ready, .engine = free};
    if (op->dma) {
        if (op->dynamic)
            later(&start, units->generator[op->queue], FR_NEURON_STALL_QUEUE);
        return start;
    }
    if (op->queue == FR_NEURON_TENSOR) {
        double cycle = 1 / machine->clock_ghz[FR_NEURON_TENSOR],
               load = machine->stationary_load_cycles * cycle;
        double bubble = free > 0 ? machine->tensor_bubble_cycles * cycle : 0;
        double loading = ready > units->load_after ? ready : units->load_after;
        start.at = free + bubble > ready ? free + bubble : ready;
        start.at = loading + load > start.at ? loading + load : start.at;
    } else if (op->table && op->table != units->table) {
        later(&start, free + machine->activation_table_ns, FR_NEURON_STALL_TABLE);
    }
    later(&start, locks(units, op), FR_NEURON_STALL_BANK);
    return start;
}

/* ---- running -------------------------------------------------------------------------------------- */

static double busy_within(fr_neuron_units *units, double from, double to)
{
    double busy = 0;
    while (units->recent_count && units->busy_end[units->recent_first] <= from) {
        units->recent_first = (units->recent_first + 1) % RECENT;
        units->recent_count--;
    }
    for (int i = 0; i < units->recent_count; i++) {
        int at = (units->recent_first + i) % RECENT;
        double first = units->busy_start[at] > from ? units->busy_start[at] : from;
        double last = units->busy_end[at] < to ? units->busy_end[at] : to;
        busy += last > first ? last - first : 0;
    }
    return busy;
}

/* Joined with the previous activity when the gap is a bubble, so that a window holds few of them. */
static void note_busy(fr_neuron_units *units, double start, double end, double gap)
{
    int last = (units->recent_first + units->recent_count + RECENT - 1) % RECENT;
    if (units->recent_count && start - units->busy_end[last] <= gap) {
        units->busy_end[last] = end;
        return;
    }
    if (units->recent_count == RECENT) {
        units->recent_first = (units->recent_first + 1) % RECENT;
        units->recent_count--;
    }
    int at = (units->recent_first + units->recent_count++) % RECENT;
    units->busy_start[at] = start;
    units->busy_end[at] = end;
}

/* Tensor's time for `busy` ns of work that begins at `start`. */
static double throttle(fr_neuron_units *units, double start, double busy)
{
    const fr_neuron_machine *machine = units->machine;
    double window = machine->throttle_window_ns, share = machine->throttle_share;
    if (!(window > 0) || !(share > 0) || share >= 1)
        return busy;
    if (units->slow_left <= 0 && busy_within(units, start - window, start) < share * window)
        units->slow_left = window;
    double slow = busy / share < units->slow_left ? busy / share : units->slow_left;
    units->slow_left -= slow;
    double taken = slow + (busy - slow * share);
    note_busy(units, start, start + taken, 20 / machine->clock_ghz[FR_NEURON_TENSOR]);
    return taken;
}

static void take_locks(fr_neuron_units *units, const fr_neuron_op *op, double end)
{
    for (uint32_t banks = op->banks; banks; banks &= banks - 1) {
        int b = __builtin_ctz(banks);
        units->bank_owner[b] = op->queue;
        units->bank_free[b] = end;
    }
    int ports[2] = {port_of(units->machine, op), psum_port_of(units->machine, op)};
    for (int i = 0; i < 2; i++)
        if (ports[i] >= 0) {
            units->port_owner[ports[i]] = op->queue;
            units->port_free[ports[i]] = end;
        }
}

fr_neuron_when fr_neuron_units_run(fr_neuron_units *units, const fr_neuron_op *op, double start,
                                   double *throttled)
{
    const fr_neuron_machine *machine = units->machine;
    double busy = op->busy;
    *throttled = 0;
    if (op->dma) {
        double end = start + fr_neuron_dma_trigger_ns(machine, op);
        units->free[op->queue] = end;
        if (op->dynamic)
            units->generator[op->queue] = start + fr_neuron_dma_generate_ns(machine, op);
        return (fr_neuron_when){end, end, end};
    }
    if (op->queue == FR_NEURON_TENSOR) {
        busy = throttle(units, start, op->busy);
        *throttled = busy - op->busy;
        units->load_after = start;
    } else if (op->table) {
        units->table = op->table;
    }
    double end = start + busy, drain = machine->drain_ns[op->queue];
    double floor = machine->clock_ghz[op->queue] > 0
                       ? machine->issue_floor_cycles[op->queue] / machine->clock_ghz[op->queue]
                       : 0;
    double through = start + floor + drain;
    units->free[op->queue] = end;
    take_locks(units, op, end);
    return (fr_neuron_when){end, end + drain, through > end ? through : end};
}
