/* Operands of row instructions as blocks of fp32 rows.
 *
 * Most Vector, Scalar and GpSimd instructions do the same to every partition. A stream hides where the rows come from:
 * contiguous fp32 is used in place, all partitions in one block; anything else (another dtype, a strided pattern) goes
 * through a buffer of a few rows that stays in the first-level cache. An instruction is then a loop:
 *
 *     fr_neuron_streams s;
 *     FR_TRY(fr_neuron_streams_open(&s, core, call, DST, (int[]){DATA1, DATA2}, 2, error));
 *     for (int p = 0; fr_neuron_streams_next(&s, &p);) {
 *         rows->pair[op](s.block, s.out.at, s.out.stride, s.in[0].at, s.in[0].stride, ...);
 *         fr_neuron_streams_done(&s, p);
 *     }
 *
 * The result is written in place only when it overlaps no input other than exactly; otherwise it is computed in the
 * buffer, so a row is always read whole before it is written.
 */
#ifndef NEURON_STREAMS_H
#define NEURON_STREAMS_H
#include "neuron/neuron_internal.h"
#include "neuron/rows/rows.h"

enum { FR_NEURON_STREAM_INPUTS = 3 };

typedef struct fr_neuron_stream {
    fr_neuron_lanes lanes;
    bool direct;    /* rows are the storage itself */
    float *buffer;  /* block rows, when not */
    float *at;      /* first row of the block; of an input: to be read only */
    int64_t stride; /* floats from row to row of the block */
} fr_neuron_stream;

typedef struct fr_neuron_streams {
    const fr_neuron_rows *rows;
    fr_neuron_stream out, in[FR_NEURON_STREAM_INPUTS];
    int inputs, partitions, block_rows;
    int64_t count;         /* elements of a row */
    fr_neuron_block block; /* of this step: rows and count */
    bool started;
} fr_neuron_streams;

/* `out` and `inputs` are positions of arguments with equal partitions and elements; out -1: nothing is written. */
fr_status fr_neuron_streams_open(fr_neuron_streams *streams, fr_neuron *core, const fr_neuron_call *call,
                                 int out, const int *inputs, int count, fr_error *error);
bool fr_neuron_streams_next(fr_neuron_streams *streams, int *partition); /* false after the last */
void fr_neuron_streams_done(fr_neuron_streams *streams,
                            int partition); /* puts the block's result where it belongs */

/* An argument that is a constant, a register or a vector, as one float a partition. */
typedef struct fr_neuron_column_values {
    float value[FR_NEURON_PARTITIONS];
    int64_t step; /* 0: all are value[0] */
} fr_neuron_column_values;
void fr_neuron_column_read(fr_neuron_column_values *column, const fr_neuron *core,
                           const fr_neuron_argument *argument, int partitions);
static inline const float *fr_neuron_column_at(const fr_neuron_column_values *column, int partition)
{
    return column->value + partition * column->step;
}
/* Writes one float a partition to a [P, 1] operand; does nothing when the argument is absent. */
void fr_neuron_column_write(fr_neuron *core, const fr_neuron_call *call, int which, const float *values);

/* Rows of 32-bit words: raw integers widened with zeros (bit patterns), and back by cutting. */
void fr_neuron_widen(uint32_t *out, const void *in, int bytes, int64_t count);
void fr_neuron_narrow_words(void *out, const uint32_t *in, int bytes, int64_t count);

#endif
