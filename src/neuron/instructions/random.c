/* rng, set_rng_seed, rand_set_state, rand_get_state, rand2, dropout: random numbers on Vector and GpSimd.
 *
 * Each lane has its own state (random.h), kept by the core from one instruction to the next. A lane that was never
 * seeded starts from a state of its own, so results are the same from run to run. */
#include "neuron/instructions/random.h"
#include "frontier/base.h"
#include "neuron/instructions.h"
#include "neuron/legality.h"
#include "neuron/streams.h"

enum { RNG_DST, RNG_ENGINE };
enum { SEED_SRC };
enum { STATE_TILE, STATE_ENGINE };
enum { RAND_DST, RAND_MIN, RAND_MAX };
enum { DROP_DST, DROP_DATA, DROP_PROB };

/* ---- lanes ---------------------------------------------------------------------------------------------------- */

typedef struct random_lane {
    uint32_t *state; /* `states` of six words */
    int states;
} random_lane;

static int first_lane(const fr_neuron_view *view)
{
    const fr_neuron_layout *layout = fr_neuron_tensor_layout(view->tensor);
    return view->partition + (layout->placed ? layout->start_partition : 0);
}

static void seed_lane(uint32_t *words, int count, uint64_t seed, int lane)
{
    for (int i = 0; i < count; i++)
        words[i] =
            (uint32_t)(fr_rng_at(seed, (uint64_t)lane, (uint64_t)i) >> 32) | (i % FR_NEURON_XORWOW < 5);
}

static random_lane lane_of(fr_neuron *core, fr_neuron_engine engine, int lane)
{
    fr_neuron_lane_state *state = fr_neuron_lane_state_of(core);
    bool gpsimd = engine == FR_NEURON_GPSIMD;
    random_lane random = {gpsimd ? state->gpsimd_random[lane] : state->vector_random[lane], gpsimd ? 1 : 4};
    uint32_t any = 0;
    for (int i = 0; i < random.states * FR_NEURON_XORWOW; i++)
        any |= random.state[i];
    if (!any)
        seed_lane(random.state, random.states * FR_NEURON_XORWOW, 0, lane);
    return random;
}

static uint32_t draw(random_lane *random, int64_t i)
{
    return fr_neuron_xorwow(random->state + i % random->states * FR_NEURON_XORWOW);
}

static float unit(uint32_t bits) /* [0, 1) */
{
    return (float)(bits >> 8) * 0x1p-24f;
}

static void price_elements(const fr_neuron_call *call, int which, fr_neuron_cost *cost)
{
    cost->cycles = fr_neuron_extent(call, which);
    cost->guess = true;
}

/* ---- rng ------------------------------------------------------------------------------------------------------ */

static fr_neuron_engine asked(const fr_neuron_call *call, int which, fr_neuron_engine otherwise)
{
    fr_neuron_engine engine = (fr_neuron_engine)call->argument[which].number;
    return engine == FR_NEURON_ANY ? otherwise : engine;
}

static fr_neuron_engine choose_rng(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core;
    return asked(call, RNG_ENGINE, FR_NEURON_VECTOR);
}

static fr_status check_rng(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                           fr_error *error)
{
    if (engine == FR_NEURON_GPSIMD)
        FR_TRY(fr_neuron_generation_at_least(core, call, 3, "rng on the GpSimd engine", error));
    return fr_neuron_dtype_allowed(core, call, RNG_DST, FR_NEURON_INTEGERS & ~FR_NEURON_OF(FR_NEURON_BOOL),
                                   error);
}

static fr_status execute_rng(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_error *error)
{
    const fr_neuron_view *view = &call->argument[RNG_DST].view;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, view);
    uint32_t *words = (uint32_t *)fr_neuron_scratch_row(core, &dst);
    void *raw = fr_neuron_scratch_row(core, &dst);
    if (!words || !raw)
        return fr_error_memory(error, (size_t)dst.row.elements * 8, "a row of integers");
    for (int p = 0; p < dst.partitions; p++) {
        random_lane random = lane_of(core, engine, first_lane(view) + p);
        for (int64_t i = 0; i < dst.row.elements; i++)
            words[i] = draw(&random, i);
        fr_neuron_narrow_words(raw, words, dst.row.width, dst.row.elements);
        fr_neuron_put_raw(&dst, p, raw);
    }
    return FR_OK;
}

static void price_rng(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                      fr_neuron_cost *cost)
{
    (void)core;
    price_elements(call, RNG_DST, cost);
    cost->cycles += engine == FR_NEURON_GPSIMD ? 150 : 0;
}

/* ---- seeds and states ----------------------------------------------------------------------------------------- */

static fr_status check_seed(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                            fr_error *error)
{
    (void)engine;
    const fr_neuron_view *seed = &call->argument[SEED_SRC].view;
    FR_TRY(fr_neuron_elements_within(core, call, SEED_SRC, 1, 1, error));
    if (seed->partitions != 1)
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_partitions_match, error,
                                "src_seeds has %d partitions, not 1", seed->partitions);
    if (fr_neuron_dtype_bytes(seed->dtype) == 4)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_dtype, error, "src_seeds is %s, it must have 32 bits",
                            fr_neuron_dtype_name(seed->dtype));
}

static fr_status execute_seed(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                              fr_error *error)
{
    (void)engine, (void)error;
    fr_neuron_lanes seed = fr_neuron_lanes_of(core, &call->argument[SEED_SRC].view);
    fr_neuron_lane_state *state = fr_neuron_lane_state_of(core);
    uint32_t word, scratch;
    fr_neuron_widen(&word, fr_neuron_raw(&seed, 0, &scratch), 4, 1);
    for (int lane = 0; lane < FR_NEURON_PARTITIONS; lane++)
        seed_lane(state->vector_random[lane], FR_NEURON_XORWOW_VECTOR, word, lane);
    return FR_OK;
}

static void price_small(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                        fr_neuron_cost *cost)
{
    (void)core;
    price_elements(call, 0, cost);
    cost->cycles += engine == FR_NEURON_GPSIMD ? 150 : 0;
}

static fr_neuron_engine choose_state(const fr_neuron *core, const fr_neuron_call *call)
{
    (void)core;
    return asked(call, STATE_ENGINE, FR_NEURON_GPSIMD);
}

static fr_status check_state(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_error *error)
{
    int words = engine == FR_NEURON_VECTOR ? FR_NEURON_XORWOW_VECTOR : FR_NEURON_XORWOW;
    if (engine == FR_NEURON_VECTOR)
        FR_TRY(fr_neuron_generation_at_least(core, call, 4, "the state of Vector's generator", error));
    FR_TRY(fr_neuron_dtype_allowed(core, call, STATE_TILE, FR_NEURON_OF(FR_NEURON_UINT32), error));
    return fr_neuron_elements_within(core, call, STATE_TILE, words, words, error);
}

static fr_status check_set(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                           fr_error *error)
{
    FR_TRY(fr_neuron_memory_allowed(core, call, STATE_TILE, FR_NEURON_IN(FR_NEURON_SBUF), error));
    return check_state(core, call, engine, error);
}

static fr_status execute_set(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_error *error)
{
    (void)error;
    const fr_neuron_view *view = &call->argument[STATE_TILE].view;
    fr_neuron_lanes tile = fr_neuron_lanes_of(core, view);
    uint32_t scratch[FR_NEURON_XORWOW_VECTOR];
    for (int p = 0; p < tile.partitions; p++) {
        random_lane random = lane_of(core, engine, first_lane(view) + p);
        fr_neuron_widen(random.state, fr_neuron_raw(&tile, p, scratch), 4, tile.row.elements);
    }
    return FR_OK;
}

static fr_status execute_get(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_error *error)
{
    (void)error;
    const fr_neuron_view *view = &call->argument[STATE_TILE].view;
    fr_neuron_lanes tile = fr_neuron_lanes_of(core, view);
    for (int p = 0; p < tile.partitions; p++) {
        random_lane random = lane_of(core, engine, first_lane(view) + p);
        fr_neuron_put_raw(&tile, p, random.state);
    }
    return FR_OK;
}

/* ---- rand2 ---------------------------------------------------------------------------------------------------- */

static fr_status check_rand2(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                             fr_error *error)
{
    (void)engine;
    const fr_neuron_argument *least = &call->argument[RAND_MIN], *most = &call->argument[RAND_MAX];
    FR_TRY(fr_neuron_arithmetic(core, call, RAND_DST, error));
    FR_TRY(fr_neuron_column(core, call, RAND_MIN, RAND_DST, true, error));
    FR_TRY(fr_neuron_column(core, call, RAND_MAX, RAND_DST, true, error));
    if (least->is_view || most->is_view || least->number < most->number)
        return FR_OK;
    return fr_neuron_refuse(core, call, FR_NEURON_RULE_value, error, "min is %g, max %g: min must be less",
                            least->number, most->number);
}

static fr_status execute_rand2(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                               fr_error *error)
{
    const fr_neuron_view *view = &call->argument[RAND_DST].view;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, view);
    fr_neuron_column_values least, most;
    float *row = fr_neuron_scratch_row(core, &dst);
    if (!row)
        return fr_error_memory(error, (size_t)dst.row.elements * 4, "a row");
    fr_neuron_column_read(&least, core, &call->argument[RAND_MIN], dst.partitions);
    fr_neuron_column_read(&most, core, &call->argument[RAND_MAX], dst.partitions);
    for (int p = 0; p < dst.partitions; p++) {
        random_lane random = lane_of(core, engine, first_lane(view) + p);
        float low = *fr_neuron_column_at(&least, p), span = *fr_neuron_column_at(&most, p) - low;
        for (int64_t i = 0; i < dst.row.elements; i++)
            row[i] = low + span * unit(draw(&random, i));
        fr_neuron_put_row(&dst, p, row);
    }
    return FR_OK;
}

static void price_rand2(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                        fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = fr_neuron_extent(call, RAND_DST) / 4;
}

/* ---- dropout -------------------------------------------------------------------------------------------------- */

static fr_status check_dropout(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                               fr_error *error)
{
    (void)engine;
    bool integers = fr_neuron_dtype_integer(call->argument[DROP_DATA].view.dtype);
    FR_TRY(fr_neuron_arithmetic(core, call, DROP_DATA, error));
    FR_TRY(fr_neuron_same_dtype(core, call, DROP_DST, DROP_DATA, error));
    FR_TRY(fr_neuron_same_elements(core, call, DROP_DST, DROP_DATA, error));
    const fr_neuron_view *prob = fr_neuron_operand(call, DROP_PROB);
    if (prob && !fr_neuron_float_dtype(prob->dtype))
        return fr_neuron_refuse(core, call, FR_NEURON_RULE_dtype, error, "prob is %s, it must be a float",
                                fr_neuron_dtype_name(prob->dtype));
    return fr_neuron_column(core, call, DROP_PROB, DROP_DATA, integers, error);
}

/* A kept element keeps its bits. */
static fr_status execute_dropout(fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                                 fr_error *error)
{
    const fr_neuron_view *view = &call->argument[DROP_DATA].view;
    fr_neuron_lanes dst = fr_neuron_lanes_of(core, &call->argument[DROP_DST].view),
                    data = fr_neuron_lanes_of(core, view);
    fr_neuron_column_values prob;
    uint32_t *words = (uint32_t *)fr_neuron_scratch_row(core, &data);
    void *raw = fr_neuron_scratch_row(core, &data);
    if (!words || !raw)
        return fr_error_memory(error, (size_t)data.row.elements * 8, "a row");
    fr_neuron_column_read(&prob, core, &call->argument[DROP_PROB], data.partitions);
    for (int p = 0; p < data.partitions; p++) {
        random_lane random = lane_of(core, engine, first_lane(view) + p);
        float limit = *fr_neuron_column_at(&prob, p);
        fr_neuron_widen(words, fr_neuron_raw(&data, p, raw), data.row.width, data.row.elements);
        for (int64_t i = 0; i < data.row.elements; i++)
            words[i] = unit(draw(&random, i)) < limit ? 0 : words[i];
        fr_neuron_narrow_words(raw, words, data.row.width, data.row.elements);
        fr_neuron_put_raw(&dst, p, raw);
    }
    return FR_OK;
}

static void price_dropout(const fr_neuron *core, const fr_neuron_call *call, fr_neuron_engine engine,
                          fr_neuron_cost *cost)
{
    (void)core, (void)engine;
    cost->cycles = fr_neuron_extent(call, DROP_DATA);
}

/* ---- descriptors ---------------------------------------------------------------------------------------------- */

#define GENERATOR "The generator is XORWOW on every engine: the distribution of the chip's, not its bits."

const fr_neuron_instruction fr_neuron_i_rng = {
    .name = "rng",
    .summary = "random bits",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR) | FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "integer tile"},
                   {.name = "engine",
                    .kind = FR_NEURON_ENGINE,
                    .number = FR_NEURON_VECTOR,
                    .text = "vector or gpsimd"}},
    .semantics = "dst = the low bits of one 32-bit random number an element. " GENERATOR,
    .limits = "Integer dtypes of 8, 16 or 32 bits. GpSimd from generation 3 on, SBUF only.",
    .cost = "N cycles, 64 at least; GpSimd 150 + N (guess).",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "r = nl.ndarray((128, 64), dtype=nl.uint32, buffer=nl.sbuf)\n"
               "nisa.rng(dst=r)",
    .engine = choose_rng,
    .check = check_rng,
    .execute = execute_rng,
    .price = price_rng,
};

const fr_neuron_instruction fr_neuron_i_set_rng_seed = {
    .name = "set_rng_seed",
    .summary = "seed Vector's random numbers",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters =
        {{.name = "src_seeds", .kind = FR_NEURON_READ, .required = true, .text = "[1, 1] tile of 32 bits"}},
    .semantics = "All lanes of Vector's generator start from the seed; the same seed gives the same numbers.",
    .limits = "One element of 32 bits.",
    .cost = "64 cycles (guess).",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "s = nl.ndarray((1, 1), dtype=nl.uint32, buffer=nl.sbuf)\n"
               "nisa.memset(dst=s, value=7)\n"
               "nisa.set_rng_seed(src_seeds=s)",
    .engine = fr_neuron_on_vector,
    .check = check_seed,
    .execute = execute_seed,
    .price = price_small,
};

const fr_neuron_instruction fr_neuron_i_rand_set_state = {
    .name = "rand_set_state",
    .summary = "load the state of the random generators",
    .least_generation = 3,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR) | FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters = {{.name = "src_seeds",
                    .kind = FR_NEURON_READ,
                    .required = true,
                    .text = "uint32: 6 words, Vector 24"},
                   {.name = "engine",
                    .kind = FR_NEURON_ENGINE,
                    .number = FR_NEURON_GPSIMD,
                    .text = "gpsimd or vector"}},
    .semantics = "Lane p's generator takes the words of partition p.",
    .limits = "uint32 in SBUF. GpSimd: 6 elements per partition; Vector, from generation 4 on: 24.",
    .cost = "64 cycles, GpSimd 156 (guess).",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "s = nl.ndarray((128, 6), dtype=nl.uint32, buffer=nl.sbuf)\n"
               "nisa.memset(dst=s, value=1)\n"
               "nisa.rand_set_state(src_seeds=s)",
    .engine = choose_state,
    .check = check_set,
    .execute = execute_set,
    .price = price_small,
};

const fr_neuron_instruction fr_neuron_i_rand_get_state = {
    .name = "rand_get_state",
    .summary = "store the state of the random generators",
    .least_generation = 3,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR) | FR_NEURON_ON(FR_NEURON_GPSIMD),
    .parameters =
        {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "uint32: 6 words, Vector 24"},
         {.name = "engine",
          .kind = FR_NEURON_ENGINE,
          .number = FR_NEURON_GPSIMD,
          .text = "gpsimd or vector"}},
    .semantics = "Partition p gets the words of lane p's generator.",
    .limits = "uint32. GpSimd: SBUF, 6 elements per partition; Vector, from generation 4 on: 24.",
    .cost = "64 cycles, GpSimd 156 (guess).",
    .cost_source = "no public figure",
    .cost_guessed = true,
    .example = "s = nl.ndarray((128, 6), dtype=nl.uint32, buffer=nl.sbuf)\n"
               "nisa.rand_get_state(dst=s)",
    .engine = choose_state,
    .check = check_state,
    .execute = execute_get,
    .price = price_small,
};

const fr_neuron_instruction fr_neuron_i_rand2 = {
    .name = "rand2",
    .summary = "uniform random numbers",
    .least_generation = 4,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "min",
                    .kind = FR_NEURON_READ_OR_NUMBER,
                    .required = true,
                    .text = "number or [P, 1] float32"},
                   {.name = "max",
                    .kind = FR_NEURON_READ_OR_NUMBER,
                    .required = true,
                    .text = "number or [P, 1] float32"}},
    .semantics = "dst = uniform numbers between min and max from Vector's XORWOW generators (four a lane, in "
                 "turn), rounded "
                 "to dst's dtype.",
    .limits = "min is less than max.",
    .cost = "N/4 cycles, 64 at least.",
    .cost_source = "trainium3 architecture guide: four random numbers per lane and cycle",
    .example = "nisa.rand2(dst=c, min=0.0, max=1.0)",
    .engine = fr_neuron_on_vector,
    .check = check_rand2,
    .execute = execute_rand2,
    .price = price_rand2,
};

const fr_neuron_instruction fr_neuron_i_dropout = {
    .name = "dropout",
    .summary = "set elements to zero at random",
    .least_generation = 2,
    .engines = FR_NEURON_ON(FR_NEURON_VECTOR),
    .parameters = {{.name = "dst", .kind = FR_NEURON_WRITE, .required = true, .text = "tile of data's dtype"},
                   {.name = "data", .kind = FR_NEURON_READ, .required = true, .text = "SBUF or PSUM tile"},
                   {.name = "prob",
                    .kind = FR_NEURON_READ_OR_NUMBER,
                    .required = true,
                    .text = "probability of a zero: number or [P, 1] vector"}},
    .semantics = "dst = data with each element set to zero with probability prob; what stays is not "
                 "scaled. " GENERATOR,
    .limits = "dst has data's dtype and size. prob is a float, float32 for integer data.",
    .cost = "N cycles, 64 at least.",
    .cost_source = "NKI API pages up to SDK 2.26 (dropout)",
    .example = "nisa.dropout(dst=c, data=a, prob=0.1)",
    .engine = fr_neuron_on_vector,
    .check = check_dropout,
    .execute = execute_dropout,
    .price = price_dropout,
};
