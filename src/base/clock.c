/* clock.c: the charged clock, the one object that knows how much time a run has left.
 *
 * Three sources answer the same questions: what is charged now, is the time up, may another step start, how
 * far along is the run. `wall` looks at a monotonic counter, `virtual` multiplies, `replay` looks up what a
 * log says. The rest of this file is common: events, the freeze at the stop, the log.
 *
 * Wall time is split at `origin`, where charging begins: when the first batch enters the model or when the
 * free steps are done, but never later than the cap after the start. A run that takes too long to start pays
 * for the excess, and needs no special case for it: before the origin is known it is simply assumed to be the
 * cap.
 *
 * A replay must see what the original saw. The log has one record per step, so the replayed run gets each
 * step's progress from it, bit for bit; a step that was dropped is begun and then expires at once, which
 * leaves the weights where the original's were.
 */
#include "base/clock_log.h"
#include "frontier/base.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* Rounding of n * seconds must not decide whether step n fits. */
static const double RELATIVE_SLACK = 1e-12;

typedef struct clock_source {
    const char *name;
    double (*charged)(const fr_clock *clock);
    double (*progress)(const fr_clock *clock, int64_t step); /* negative: no such step */
    bool (*expired)(const fr_clock *clock);
    bool (*finished)(const fr_clock *clock, int64_t next_step, double estimate);
} clock_source;

struct fr_clock {
    const clock_source *source;
    fr_clock_options options;
    fr_clock_log log;
    fr_clock_history history; /* replay */
    int64_t start_ns, origin_ns;
    bool charging;   /* the origin is known */
    double restored; /* wall: charged by earlier processes; virtual: what they charged beyond this clock's own
                        rule */
    int64_t step;    /* the step begun last, or the next one */
    int64_t completed;  /* steps done, by number */
    double progress;    /* of the step begun last */
    double now_charged; /* replay: the charge at the last event */
    bool stopped;
    double stop_charged;
};

static int64_t now_ns(const fr_clock *clock)
{
    if (clock->options.now_ns)
        return clock->options.now_ns(clock->options.now_context);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Seconds to ns, saturating: a cap of 1e300 s means never. */
static int64_t to_ns(double seconds)
{
    return seconds < 9e9 ? (int64_t)(seconds * 1e9) : INT64_C(9000000000000000000);
}

/* ---- sources ----------------------------------------------------------------------------------- */

static double time_progress(const fr_clock *clock, int64_t step)
{
    const fr_clock_options *o = &clock->options;
    double p = 0.0;
    if (o->budget > 0)
        p = clock->source->charged(clock) / o->budget;
    else if (o->max_steps > 0)
        p = (double)step / (double)o->max_steps;
    return p > 0.0 ? p < 1.0 ? p : 1.0 : 0.0;
}

static int64_t latest_origin(const fr_clock *clock)
{
    int64_t cap = to_ns(clock->options.startup_cap);
    return cap > INT64_MAX - clock->start_ns ? INT64_MAX : clock->start_ns + cap;
}

static double wall_charged(const fr_clock *clock)
{
    int64_t origin = clock->charging ? clock->origin_ns : latest_origin(clock), now = now_ns(clock);
    return clock->restored + (now > origin ? (double)(now - origin) * 1e-9 : 0.0);
}

static bool wall_expired(const fr_clock *clock)
{
    const fr_clock_options *o = &clock->options;
    return o->budget > 0 && wall_charged(clock) + o->reserve >= o->budget;
}

static bool wall_finished(const fr_clock *clock, int64_t next_step, double estimate)
{
    (void)next_step;
    const fr_clock_options *o = &clock->options;
    bool hopeless = o->budget > 0 && estimate > 0 && wall_charged(clock) + estimate + o->reserve > o->budget;
    return hopeless || wall_expired(clock);
}

/* What n steps cost: the free ones are start-up, as far as the cap goes. */
static double virtual_cost(const fr_clock *clock, int64_t steps)
{
    const fr_clock_options *o = &clock->options;
    double elapsed = (double)steps * o->seconds_per_step;
    double free_seconds = (double)o->free_steps * o->seconds_per_step;
    if (free_seconds > o->startup_cap)
        free_seconds = o->startup_cap;
    return elapsed > free_seconds ? elapsed - free_seconds : 0.0;
}

static double virtual_charged(const fr_clock *clock)
{
    return virtual_cost(clock, clock->completed) + clock->restored;
}

static bool virtual_finished(const fr_clock *clock, int64_t next_step, double estimate)
{
    (void)estimate;
    double budget = clock->options.budget;
    double after = virtual_cost(clock, next_step + 1) + clock->restored;
    return budget > 0 && after > budget * (1.0 + RELATIVE_SLACK);
}

static bool virtual_expired(const fr_clock *clock)
{
    return virtual_finished(clock, clock->step, 0);
}

static const fr_clock_record *replay_record(const fr_clock *clock, int64_t step)
{
    const fr_clock_history *h = &clock->history;
    return step >= h->first && step - h->first < h->count ? &h->records[step - h->first] : NULL;
}

static double replay_charged(const fr_clock *clock)
{
    return clock->now_charged;
}

static double replay_progress(const fr_clock *clock, int64_t step)
{
    const fr_clock_record *record = replay_record(clock, step);
    return record ? record->progress : -1.0;
}

static bool replay_expired(const fr_clock *clock)
{
    const fr_clock_record *record = replay_record(clock, clock->step);
    return !record || record->dropped;
}

/* A step before the first one on record is not the end: begin_step will say that it is missing. */
static bool replay_finished(const fr_clock *clock, int64_t next_step, double estimate)
{
    (void)estimate;
    return next_step - clock->history.first >= clock->history.count;
}

static const clock_source SOURCES[] = {
    [FR_CLOCK_WALL] = {"wall", wall_charged, time_progress, wall_expired, wall_finished},
    [FR_CLOCK_VIRTUAL] = {"virtual", virtual_charged, time_progress, virtual_expired, virtual_finished},
    [FR_CLOCK_REPLAY] = {"replay", replay_charged, replay_progress, replay_expired, replay_finished},
};

/* ---- making ------------------------------------------------------------------------------------ */

fr_status fr_clock_parse(const char *text, fr_clock_options *options, char *storage, size_t size,
                         fr_error *error)
{
    if (strcmp(text, "wall") == 0) {
        options->kind = FR_CLOCK_WALL;
        return FR_OK;
    }
    if (strncmp(text, "virtual:", 8) == 0) {
        double seconds;
        FR_TRY(fr_parse_duration(text + 8, &seconds, "clock", error));
        if (!(seconds > 0))
            return fr_error_set(error, FR_BAD_USAGE, "clock",
                                "virtual:0.5 makes every step take half a second",
                                "a virtual step must take more than 0 seconds");
        options->kind = FR_CLOCK_VIRTUAL;
        options->seconds_per_step = seconds;
        return FR_OK;
    }
    if (strncmp(text, "replay:", 7) == 0 && text[7]) {
        int length = snprintf(storage, size, "%s", text + 7);
        if (length >= (int)size)
            return fr_error_set(error, FR_BAD_USAGE, "clock", "use a shorter path",
                                "the path of the run to replay is too long");
        options->kind = FR_CLOCK_REPLAY;
        options->replay_path = storage;
        return FR_OK;
    }
    return fr_error_set(error, FR_BAD_USAGE, "clock", "use wall, virtual:SECONDS or replay:RUN",
                        "unknown clock '%.100s'", text);
}

static fr_status check_options(const fr_clock_options *o, fr_error *error)
{
    if ((unsigned)o->kind > FR_CLOCK_REPLAY)
        return fr_error_set(error, FR_BUG, "clock", NULL, "clock kind %d does not exist", (int)o->kind);
    if (!isfinite(o->budget))
        return fr_error_set(error, FR_BAD_USAGE, "budget", NULL, "the budget must be a number of seconds");
    if (!(o->startup_cap >= 0))
        return fr_error_set(error, FR_BAD_USAGE, "startup_cap", NULL,
                            "the start-up cap must be 0 seconds or more");
    if (!(o->reserve >= 0) || o->free_steps < 0)
        return fr_error_set(error, FR_BAD_USAGE, "clock", NULL, "reserve and free steps must be 0 or more");
    if (o->kind == FR_CLOCK_WALL && o->budget > 0 && o->reserve >= o->budget)
        return fr_error_set(error, FR_BAD_USAGE, "reserve", "raise the budget or lower the reserve",
                            "a reserve of %g s leaves nothing of a budget of %g s", o->reserve, o->budget);
    if (o->kind == FR_CLOCK_VIRTUAL && !(o->seconds_per_step > 0 && isfinite(o->seconds_per_step)))
        return fr_error_set(error, FR_BAD_USAGE, "clock", NULL,
                            "a virtual step must take more than 0 seconds");
    if (o->kind == FR_CLOCK_REPLAY && !o->replay_path)
        return fr_error_set(error, FR_BAD_USAGE, "clock", "use replay:RUN", "the run to replay is not named");
    return FR_OK;
}

fr_status fr_clock_create(fr_clock **out, const fr_clock_options *options, fr_error *error)
{
    FR_TRY(check_options(options, error));
    fr_clock *clock = fr_allocate(sizeof *clock);
    if (!clock)
        return fr_error_memory(error, sizeof *clock, "a clock");
    clock->options = *options;
    clock->source = &SOURCES[options->kind];
    clock->log.descriptor = -1;
    clock->start_ns = now_ns(clock);
    fr_status status = FR_OK;
    if (options->kind == FR_CLOCK_REPLAY) {
        status = fr_clock_history_load(&clock->history, options->replay_path, error);
        clock->options.budget = clock->history.budget;
    }
    if (status == FR_OK)
        status = fr_clock_log_open(&clock->log, options->log_path, error);
    if (status != FR_OK) {
        fr_clock_free(clock);
        return status;
    }
    clock->options.replay_path = clock->options.log_path = NULL; /* the caller's; used up */
    *out = clock;
    return FR_OK;
}

void fr_clock_free(fr_clock *clock)
{
    if (!clock)
        return;
    fr_clock_log_close(&clock->log);
    fr_clock_history_release(&clock->history);
    fr_deallocate(clock);
}

/* ---- events ------------------------------------------------------------------------------------ */

static void write_event(fr_clock *clock, const char *name, int64_t t_ns, int64_t step, const char *details)
{
    fr_clock_event event = {name, t_ns, step, clock->progress, fr_clock_charged(clock), details};
    fr_clock_log_write(&clock->log, &event);
}

/* What the start and each resume say about the clock. */
static void write_rules(fr_clock *clock, const char *name, int64_t t_ns, int64_t step)
{
    const fr_clock_options *o = &clock->options;
    char details[400];
    snprintf(details, sizeof details,
             ",\"source\":\"%s\",\"budget_s\":%.17g,\"reserve_s\":%.17g,\"startup_cap_s\":%.17g,\"free_"
             "steps\":%lld,\"max_steps\":%lld",
             clock->source->name, o->budget, o->reserve, o->startup_cap < 1e300 ? o->startup_cap : 1e300,
             (long long)o->free_steps, (long long)o->max_steps);
    write_event(clock, name, t_ns, step, details);
}

/* The log's first line is written late, because only the first event tells a new run from a resumed one. */
static void write_start(fr_clock *clock)
{
    if (clock->log.descriptor >= 0 && clock->log.length < 0)
        write_rules(clock, "start", clock->start_ns, 0);
}

void fr_clock_restore(fr_clock *clock, double charged, int64_t step)
{
    clock->step = clock->completed = step;
    clock->restored = charged;
    clock->now_charged = charged;
    if (clock->options.kind == FR_CLOCK_VIRTUAL)
        clock->restored =
            charged - virtual_cost(clock, step); /* 0 when the same clock saved it: sums stay exact */
    fr_clock_log_continue(&clock->log);
    write_rules(clock, "resume", now_ns(clock), step);
}

static void start_charging(fr_clock *clock)
{
    if (clock->charging)
        return;
    int64_t now = now_ns(clock), latest = latest_origin(clock);
    clock->origin_ns = now < latest ? now : latest;
    clock->charging = true;
    write_start(clock);
    char details[64];
    snprintf(details, sizeof details, ",\"startup_s\":%.17g", fr_clock_startup(clock));
    write_event(clock, "charge", now, clock->step, details);
}

void fr_clock_first_batch(fr_clock *clock)
{
    if (clock->completed >= clock->options.free_steps)
        start_charging(clock);
}

double fr_clock_begin_step(fr_clock *clock, int64_t step, fr_error *error)
{
    clock->step = step;
    fr_clock_first_batch(clock);
    write_start(clock);
    double progress = clock->source->progress(clock, step);
    if (progress < 0) {
        fr_error_set(error, FR_BAD_DATA, "replay",
                     "replay the run from its first step or from its own checkpoint",
                     "the clock log has steps %lld to %lld, not step %lld", (long long)clock->history.first,
                     (long long)(clock->history.first + clock->history.count - 1), (long long)step);
        return progress;
    }
    clock->progress = progress;
    return progress;
}

bool fr_clock_expired(const fr_clock *clock)
{
    return clock->stopped || clock->source->expired(clock);
}

/* From here on the charge stands still. */
static void freeze(fr_clock *clock)
{
    clock->stop_charged = fr_clock_charged(clock);
    clock->stopped = true;
}

static void write_stop(fr_clock *clock, int64_t next_step)
{
    const char *details = fr_clock_over_budget(clock) ? ",\"over_budget\":true" : ",\"over_budget\":false";
    write_event(clock, "stop", now_ns(clock), next_step, details);
}

/* A replay takes the charge of the step from its record. */
static void charge_recorded(fr_clock *clock, int64_t step)
{
    const fr_clock_record *record = replay_record(clock, step);
    if (record)
        clock->now_charged = record->charged;
}

fr_status fr_clock_end_step(fr_clock *clock, int64_t step, fr_error *error)
{
    if (step != clock->step)
        return fr_error_set(error, FR_BUG, "clock", NULL, "step %lld ends but step %lld was begun",
                            (long long)step, (long long)clock->step);
    clock->completed = step + 1;
    charge_recorded(clock, step);
    if (step + 1 >= clock->options.free_steps)
        start_charging(clock);
    write_event(clock, "step", now_ns(clock), step, NULL);
    return fr_clock_log_status(clock, error);
}

void fr_clock_drop_step(fr_clock *clock, int64_t step)
{
    bool time_is_up = fr_clock_expired(clock);
    charge_recorded(clock, step);
    bool stops = time_is_up && !clock->stopped;
    if (stops)
        freeze(clock);
    write_event(clock, "drop", now_ns(clock), step, NULL);
    if (stops)
        write_stop(clock, step);
}

bool fr_clock_finished(fr_clock *clock, int64_t next_step, double next_step_estimate)
{
    if (clock->stopped)
        return true;
    bool source_ends = clock->source->finished(clock, next_step, next_step_estimate);
    bool steps_done = clock->options.max_steps > 0 && next_step >= clock->options.max_steps;
    if (!source_ends && !steps_done)
        return false;
    if (source_ends && clock->options.kind == FR_CLOCK_REPLAY)
        clock->now_charged = clock->history.stop_charged;
    freeze(clock);
    write_start(clock);
    write_stop(clock, next_step);
    return true;
}

/* ---- questions --------------------------------------------------------------------------------- */

double fr_clock_charged(const fr_clock *clock)
{
    return clock->stopped ? clock->stop_charged : clock->source->charged(clock);
}

double fr_clock_startup(const fr_clock *clock)
{
    if (clock->options.kind == FR_CLOCK_REPLAY)
        return clock->history.startup;
    if (clock->options.kind == FR_CLOCK_VIRTUAL)
        return (double)clock->completed * clock->options.seconds_per_step -
               virtual_cost(clock, clock->completed);
    int64_t now = now_ns(clock), latest = latest_origin(clock);
    int64_t origin = clock->charging ? clock->origin_ns : now < latest ? now : latest;
    return (double)(origin - clock->start_ns) * 1e-9;
}

bool fr_clock_over_budget(const fr_clock *clock)
{
    double budget = clock->options.budget;
    return budget > 0 && fr_clock_charged(clock) > budget * (1.0 + RELATIVE_SLACK);
}

const char *fr_clock_source(const fr_clock *clock)
{
    return clock->source->name;
}

double fr_clock_budget(const fr_clock *clock)
{
    return clock->options.budget;
}

fr_status fr_clock_log_status(const fr_clock *clock, fr_error *error)
{
    if (clock->log.failure.status != FR_OK && error)
        *error = clock->log.failure;
    return clock->log.failure.status;
}
