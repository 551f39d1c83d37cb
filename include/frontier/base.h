/* frontier/base.h: the ground everything stands on.
 *
 * Mental model. A library call either does its work and returns FR_OK, or changes nothing the caller
 * can see, fills the fr_error it was given and returns the reason's kind. The kinds ARE the exit codes
 * of the command, so nothing is translated on the way up. The library never prints and never exits;
 * progress is handed to a callback. Memory comes from an arena or has one named owner.
 *
 *     fr_error error = {0};
 *     fr_arena arena;
 *     fr_arena_init(&arena, 1 << 20);
 *     char *text; size_t bytes;
 *     if (fr_file_read(&arena, "notes.txt", &text, &bytes, &error) != FR_OK)
 *         fprintf(stderr, "%s: %s (%s)\n", error.where, error.what, error.hint);
 *     fr_arena_release(&arena);
 *
 * Lifecycle verbs, everywhere in this library:
 *     X_init(X *)     make a value from raw memory      X_release(X *)  undo init, keep the struct
 *     X_create(X **)  allocate and init                 X_free(X *)     release and deallocate; NULL is fine
 *     X_clear(X *)    empty it, keep its memory
 *
 * Thread rule: unless a comment says otherwise an object belongs to one thread at a time; different
 * objects may be used from different threads.
 */
#ifndef FRONTIER_BASE_H
#define FRONTIER_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- errors ------------------------------------------------------------------------------------ */

/* Kinds of outcome; the numbers are the exit codes of `frontier`. */
typedef enum fr_status {
    FR_OK = 0,
    FR_ANSWER_NO = 1,       /* the answer is no: invalid score, failed check, a contestant's failure */
    FR_BAD_USAGE = 2,       /* the caller or user asked for something that makes no sense */
    FR_BAD_DATA = 3,        /* a file or stream is not what it must be */
    FR_BAD_ENVIRONMENT = 4, /* the machine lacks something: memory, disk, a library, a permission */
    FR_BUG = 5,             /* our own fault */
    FR_STOPPED = 6          /* stopped early by a signal or a request; saved and resumable */
} fr_status;

/* What went wrong, where, and what to do next. Plain value; zero-initialise; no release needed. */
typedef struct fr_error {
    fr_status status;
    char what[400];  /* lower case, no full stop: "unknown key 'dept'" */
    char where[300]; /* the subject: a path, "path:line", an option, a tensor; may be "" */
    char hint[300];  /* what to do next: "did you mean 'depth'?"; may be "" */
} fr_error;

/* Fills `error` (which may be NULL) and returns `status`, so `return fr_error_set(...)` reads well.
 * `where` and `hint` may be NULL. */
fr_status fr_error_set(fr_error *error, fr_status status, const char *where, const char *hint,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Names the enclosing subject of an error that already happened: where becomes "outer: inner". */
fr_status fr_error_within(fr_error *error, fr_status status, const char *outer);
/* "frontier: error: WHERE: WHAT\n  hint: HINT\n" into out (for the command; the library never prints). */
void fr_error_format(const fr_error *error, char *out, size_t size);
/* Shorthand for a failed allocation of `bytes` for `purpose`. Returns FR_BAD_ENVIRONMENT. */
fr_status fr_error_memory(fr_error *error, size_t bytes, const char *purpose);

#define FR_TRY(expression)                        \
    do {                                          \
        fr_status fr_try_status_ = (expression);  \
        if (fr_try_status_ != FR_OK)              \
            return fr_try_status_;                \
    } while (0)

/* ---- memory ------------------------------------------------------------------------------------ */

/* Heap calls of the whole library go through these, so that tests can make the N-th one fail.
 * fr_allocate returns zeroed memory or NULL; 64-byte aligned; fr_deallocate(NULL) is fine. */
void *fr_allocate(size_t bytes);
void *fr_reallocate(void *memory, size_t bytes);
void fr_deallocate(void *memory);
/* Tests: after `n` more successful calls every allocation fails; negative switches this off. */
void fr_allocate_fail_after(int64_t n);

/* An arena: many allocations, one release. Memory is zeroed, 64-byte aligned for sizes of 64 and more,
 * 16 otherwise, and lives until clear, rewind or release. */
typedef struct fr_arena {
    struct fr_arena_block *block;
    size_t block_bytes;
    size_t total;
} fr_arena;
typedef struct fr_arena_mark {
    struct fr_arena_block *block;
    size_t used;
} fr_arena_mark;

void fr_arena_init(fr_arena *arena, size_t block_bytes); /* no memory is taken yet */
void *fr_arena_alloc(fr_arena *arena, size_t bytes);     /* NULL when the machine has no more */
char *fr_arena_strdup(fr_arena *arena, const char *text);
char *fr_arena_printf(fr_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
fr_arena_mark fr_arena_save(fr_arena *arena);
void fr_arena_rewind(fr_arena *arena, fr_arena_mark mark);
void fr_arena_clear(fr_arena *arena);
void fr_arena_release(fr_arena *arena);

/* A growable byte buffer, always NUL-terminated, with a maximum fixed at init (0 = no limit). A failed
 * append (memory or limit) makes the buffer `failed` and later appends do nothing: check once at the end. */
typedef struct fr_buffer {
    char *data;
    size_t length, capacity, limit;
    bool failed;
} fr_buffer;
void fr_buffer_init(fr_buffer *buffer, size_t limit);
void fr_buffer_append(fr_buffer *buffer, const void *bytes, size_t count);
void fr_buffer_printf(fr_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fr_buffer_clear(fr_buffer *buffer);
void fr_buffer_release(fr_buffer *buffer);

/* ---- strings and numbers ----------------------------------------------------------------------- */

/* Whole-string parsers: surrounding junk, overflow and NaN are refused (FR_BAD_USAGE). `where` names the
 * option or key in the error. Durations: "30m", "90s", "1h30m", "250ms", plain seconds. Sizes: "5MB",
 * "64MiB", "1e6", plain bytes. */
fr_status fr_parse_int(const char *text, int64_t least, int64_t most, int64_t *out, const char *where, fr_error *error);
fr_status fr_parse_real(const char *text, double least, double most, double *out, const char *where, fr_error *error);
fr_status fr_parse_duration(const char *text, double *seconds, const char *where, fr_error *error);
fr_status fr_parse_size(const char *text, int64_t *bytes, const char *where, fr_error *error);
/* The candidate nearest to `text` by edit distance, or NULL if none is near; for "did you mean". */
const char *fr_nearest(const char *text, const char *const *candidates, size_t count);
/* Human forms, written into out and returned: "1.2 GiB", "3 m 04 s", "12,345,678", "4.05e8". */
char *fr_format_bytes(char *out, size_t size, double bytes);
char *fr_format_duration(char *out, size_t size, double seconds);
char *fr_format_count(char *out, size_t size, int64_t value);

/* ---- random numbers ---------------------------------------------------------------------------- */

/* Counter-based generator (Philox4x32-10; Salmon et al., SC 2011): the i-th number of a stream depends on
 * (seed, stream, i) alone, so any thread may draw any part of it. No libm: the same on every machine. */
typedef struct fr_rng {
    uint64_t seed, stream, index;
} fr_rng;
uint64_t fr_rng_at(uint64_t seed, uint64_t stream, uint64_t index);
uint64_t fr_rng_next(fr_rng *rng);                       /* 64 uniform bits */
uint64_t fr_rng_below(fr_rng *rng, uint64_t bound);      /* 0..bound-1 without bias; bound > 0 */
double fr_rng_uniform(fr_rng *rng);                      /* [0, 1) */
double fr_rng_normal_at(uint64_t seed, uint64_t stream, uint64_t index); /* N(0,1), own log and cosine */
double fr_rng_uniform_at(uint64_t seed, uint64_t stream, uint64_t index);
uint64_t fr_hash64(const void *bytes, size_t count, uint64_t seed); /* fast, stable across machines, not for security */

/* ---- files, hashes, durable writes -------------------------------------------------------------- */

fr_status fr_file_read(fr_arena *arena, const char *path, char **out, size_t *bytes, fr_error *error); /* NUL added */
/* Durable and atomic: temporary file beside it, fsync, rename, fsync of the folder. */
fr_status fr_file_write(const char *path, const void *bytes, size_t count, fr_error *error);
/* The same for content produced in pieces. Between begin and commit the target is untouched; abort is safe
 * after any failure. Appending after a failure is a no-op; commit reports it. */
typedef struct fr_file_writer {
    FILE *stream;
    char path[1024], temporary[1088];
    bool failed;
    int code; /* errno of the failure */
} fr_file_writer;
fr_status fr_file_writer_begin(fr_file_writer *writer, const char *path, fr_error *error);
void fr_file_writer_append(fr_file_writer *writer, const void *bytes, size_t count);
fr_status fr_file_writer_commit(fr_file_writer *writer, fr_error *error);
void fr_file_writer_abort(fr_file_writer *writer);
/* Tests: after `n` more bytes every durable write fails as a full disk does; negative switches this off. */
void fr_file_fail_after(int64_t n);

/* A read-only mapping of a whole file. An empty file maps to data "" and bytes 0. */
typedef struct fr_mapping {
    const uint8_t *data;
    size_t bytes;
} fr_mapping;
fr_status fr_mapping_init(fr_mapping *mapping, const char *path, fr_error *error);
void fr_mapping_release(fr_mapping *mapping);

fr_status fr_folder_make(const char *path, fr_error *error); /* with parents; an existing folder is fine */
bool fr_path_exists(const char *path);
bool fr_path_is_folder(const char *path);
char *fr_path_join(char *out, size_t size, const char *folder, const char *name);
/* Names in a folder in byte order, without . and ..; NULL-terminated array in the arena. */
fr_status fr_folder_list(fr_arena *arena, const char *path, char ***names, size_t *count, fr_error *error);

/* SHA-256 as 64 hex digits and a NUL. */
void fr_sha256(const void *bytes, size_t count, char hex[65]);
fr_status fr_sha256_file(const char *path, char hex[65], fr_error *error);
uint64_t fr_checksum64(const void *bytes, size_t count); /* for file headers: fr_hash64 with seed 0 */

/* ---- threads ------------------------------------------------------------------------------------ */

/* One pool for the process's work. Threads = min(affinity, cgroup quota) unless told. */
typedef struct fr_pool fr_pool;
typedef void (*fr_pool_job)(void *context, int64_t index, int thread);
int fr_cpu_available(void); /* processors this process may use: affinity and cgroup quota respected, >= 1 */
fr_status fr_pool_create(fr_pool **pool, int threads, fr_error *error); /* threads <= 0: all available */
int fr_pool_threads(const fr_pool *pool);                               /* NULL pool: 1 */
/* Calls job(context, i, thread) for i in 0..count-1, i handed out in order to whoever is free; the caller
 * works as thread 0. Returns when all are done. pool may be NULL (runs inline). Not reentrant. */
void fr_pool_for(fr_pool *pool, int64_t count, fr_pool_job job, void *context);
void fr_pool_free(fr_pool *pool);

/* ---- progress ----------------------------------------------------------------------------------- */

/* Long work reports through this; NULL callbacks are fine. The command draws bars, tests record calls.
 * `total` 0 = unknown. Returning true from `stop` asks the work to stop soon (FR_STOPPED). */
typedef struct fr_progress {
    void (*update)(void *context, const char *phase, double done, double total, const char *note);
    void (*message)(void *context, const char *text); /* one line, no newline */
    bool (*stop)(void *context);
    void *context;
} fr_progress;
void fr_progress_update(const fr_progress *progress, const char *phase, double done, double total, const char *note);
void fr_progress_message(const fr_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool fr_progress_stop(const fr_progress *progress);

/* ---- configuration: a strict TOML subset --------------------------------------------------------- */

/* [section] headers, key = value with strings, integers, floats, booleans and arrays of those, comments.
 * Every key must be declared in a schema; anything else is an error that names the nearest key. */
typedef enum fr_config_type { FR_CONFIG_INT, FR_CONFIG_REAL, FR_CONFIG_BOOL, FR_CONFIG_STRING, FR_CONFIG_REALS } fr_config_type;
typedef struct fr_config_key {
    const char *name;        /* "model.depth" */
    fr_config_type type;
    size_t offset;           /* into the target struct: int64_t, double, bool, char[64], or fr_config_reals */
    const char *fallback;    /* default in TOML syntax; NULL = required */
    double least, most;      /* for numbers; both 0 = any */
    const char *choices;     /* for strings: "a|b|c"; NULL = any */
    const char *help;        /* one line, with the unit */
} fr_config_key;
typedef struct fr_config_reals {
    int count;
    double values[16];
} fr_config_reals;
/* Sets every key's default in `target`; then parse and set override. `origin` names the file in errors. */
fr_status fr_config_defaults(const fr_config_key *keys, size_t count, void *target, fr_error *error);
fr_status fr_config_parse(const fr_config_key *keys, size_t count, void *target, const char *text, const char *origin, fr_error *error);
fr_status fr_config_set(const fr_config_key *keys, size_t count, void *target, const char *assignment, fr_error *error); /* "model.depth=6" */
void fr_config_write(const fr_config_key *keys, size_t count, const void *target, fr_buffer *out); /* all values, resolved, with comments */

/* ---- append-only log ---------------------------------------------------------------------------- */

/* Records with length and checksum; a torn last record is dropped on open and reported in `dropped_bytes`. */
typedef struct fr_log fr_log;
fr_status fr_log_open(fr_log **log, const char *path, int64_t *dropped_bytes, fr_error *error); /* creates */
fr_status fr_log_append(fr_log *log, const void *bytes, size_t count, fr_error *error);
fr_status fr_log_sync(fr_log *log, fr_error *error);
void fr_log_close(fr_log *log);
/* Calls visit for each whole record in order. */
fr_status fr_log_read(const char *path, fr_status (*visit)(void *context, const void *bytes, size_t count, fr_error *error), void *context, fr_error *error);

/* ---- the charged clock --------------------------------------------------------------------------- */

/* Time is the resource. One clock decides progress, schedules, the stop and the last checkpoint.
 *   wall          monotonic time
 *   virtual:S     every step takes S seconds; nothing can stall, so it keeps no reserve and a budget of n*S buys n steps
 *   replay:RUN    progress and charged time of each step, and the stop, are read from an earlier run's clock log
 * Start-up is free up to a cap. By default charging starts when the first batch enters the model, at most
 * `startup_cap` seconds after start ("first-batch"). The preset "kit" leaves 5 steps free, cap 900 s.
 * Progress p is read BEFORE a step: the schedules of step k see the time charged up to step k-1.
 *
 *     while (!fr_clock_finished(clock, step, 0)) {
 *         double p = fr_clock_begin_step(clock, step, &error);    // negative: see error
 *         for each micro-batch: if (fr_clock_expired(clock)) { fr_clock_drop_step(clock, step); goto stop; }
 *         fr_clock_end_step(clock, step, &error); step++;
 *     }
 *
 * The stop: once charged + reserve >= budget no micro-batch may begin. So the run ends within the budget whenever the
 * last micro-batch, with all stalls, takes no longer than the reserve; otherwise it is over budget, on record. The charge
 * stands still from the stop on: the final save and scoring are free.
 * Clock log: JSON lines {"t_ns","boot_id","event","step","progress","charged_s"} in <run>/clock.jsonl; the events are
 * start, charge, step, drop, stop, resume ("base/clock_log.h" reads them). */
typedef enum fr_clock_kind { FR_CLOCK_WALL, FR_CLOCK_VIRTUAL, FR_CLOCK_REPLAY } fr_clock_kind;
typedef struct fr_clock_options {
    fr_clock_kind kind;
    double budget;           /* seconds to charge; <= 0: no time limit (steps decide) */
    double seconds_per_step; /* virtual */
    const char *replay_path; /* replay: a run folder */
    int64_t free_steps;      /* 0 = charging starts at the first batch */
    double startup_cap;      /* seconds */
    double reserve;          /* kept for the final save, seconds */
    int64_t max_steps;       /* <= 0: none; progress then counts steps / max_steps when there is no budget */
    const char *log_path;    /* NULL: no log */
    int64_t (*now_ns)(void *context); /* NULL: CLOCK_MONOTONIC; tests inject stalls here */
    void *now_context;
} fr_clock_options;
typedef struct fr_clock fr_clock;

/* Parses "wall", "virtual:0.5", "replay:RUN" into kind, seconds_per_step, replay_path (copied into storage). */
fr_status fr_clock_parse(const char *text, fr_clock_options *options, char *storage, size_t size, fr_error *error);
fr_status fr_clock_create(fr_clock **clock, const fr_clock_options *options, fr_error *error); /* start = now */
/* Resume: continue a saved charge at `step`. */
void fr_clock_restore(fr_clock *clock, double charged, int64_t step);
void fr_clock_first_batch(fr_clock *clock);          /* the first batch enters the model; begin_step implies it */
/* Returns progress in [0,1] for this step; negative when the replayed log has no such step. */
double fr_clock_begin_step(fr_clock *clock, int64_t step, fr_error *error);
bool fr_clock_expired(const fr_clock *clock);        /* test before every micro-batch */
fr_status fr_clock_end_step(fr_clock *clock, int64_t step, fr_error *error); /* charges it, logs it */
void fr_clock_drop_step(fr_clock *clock, int64_t step); /* unfinished: logged as dropped */
/* No further step may start. The first true is the stop: the charge stands still and the log says so. The estimate is
 * a lower bound of the next step's seconds and only skips a step that cannot fit; 0 = unknown. */
bool fr_clock_finished(fr_clock *clock, int64_t next_step, double next_step_estimate);
double fr_clock_charged(const fr_clock *clock);      /* seconds */
double fr_clock_startup(const fr_clock *clock);      /* seconds that were free */
bool fr_clock_over_budget(const fr_clock *clock);    /* a stall longer than the reserve happened */
const char *fr_clock_source(const fr_clock *clock);  /* "wall", "virtual", "replay" */
double fr_clock_budget(const fr_clock *clock);       /* seconds; a replay's is the recorded one; <= 0: none */
/* The first failure to write the clock log, if any; a run without a whole log must not claim to be replayable. */
fr_status fr_clock_log_status(const fr_clock *clock, fr_error *error);
void fr_clock_free(fr_clock *clock);

/* ---- schedules ----------------------------------------------------------------------------------- */

/* All are total functions: any p (clamped to [0,1]), any step >= 0; never negative, never NaN. */
double fr_schedule_warm_cool(double p, double warm, double cool, double floor); /* trapezoid in progress */
double fr_schedule_ramp(int64_t step, double from, double to, int64_t steps);   /* linear by step, then flat */
double fr_schedule_linear_to_zero(double p);                                    /* 1 - p */
double fr_schedule_cosine_to_zero(double p);                                    /* 0.5 (1 + cos pi p) */

#endif
