/* Blocks of rows: see streams.h. A block that is not in place holds about 16 KiB a stream: four rows of a 1024-wide tile,
 * one row of anything wider than 4096. */
#include "neuron/streams.h"

#include <string.h>

enum { BLOCK_FLOATS = 4096 };

static fr_status open_one(fr_neuron_stream *stream, fr_neuron *core, int block_rows, fr_error *error)
{
    if (stream->direct) {
        stream->stride = stream->lanes.pitch / (int64_t)sizeof(float);
        return FR_OK;
    }
    stream->stride = stream->lanes.row.elements;
    int64_t bytes = block_rows * stream->stride * (int64_t)sizeof(float);
    stream->buffer = fr_neuron_scratch(core, bytes);
    return stream->buffer ? FR_OK : fr_error_memory(error, (size_t)bytes, "rows of an operand");
}

static bool in_place(const fr_neuron_lanes *lanes)
{
    return lanes->row.contiguous && lanes->dtype == FR_NEURON_FLOAT32;
}

static void find_lanes(fr_neuron_streams *s, const fr_neuron *core, const fr_neuron_call *call, int out,
                       const int *inputs)
{
    const fr_neuron_lanes *read[FR_NEURON_STREAM_INPUTS];
    for (int i = 0; i < s->inputs; i++) {
        s->in[i].lanes = fr_neuron_lanes_of(core, &call->argument[inputs[i]].view);
        s->in[i].direct = in_place(&s->in[i].lanes);
        read[i] = &s->in[i].lanes;
    }
    if (out >= 0) {
        s->out.lanes = fr_neuron_lanes_of(core, &call->argument[out].view);
        s->out.direct = fr_neuron_direct(&s->out.lanes, read, s->inputs);
    }
}

fr_status fr_neuron_streams_open(fr_neuron_streams *s, fr_neuron *core, const fr_neuron_call *call, int out,
                                 const int *inputs, int count, fr_error *error)
{
    *s = (fr_neuron_streams){.rows = fr_neuron_rows_best(), .inputs = count, .out.direct = true};
    find_lanes(s, core, call, out, inputs);
    const fr_neuron_lanes *first = out >= 0 ? &s->out.lanes : &s->in[0].lanes;
    s->partitions = first->partitions;
    s->count = first->row.elements;
    bool all = s->out.direct;
    for (int i = 0; i < count; i++)
        all = all && s->in[i].direct;
    int64_t fitting = BLOCK_FLOATS / (s->count ? s->count : 1);
    s->block_rows = all || fitting > s->partitions ? s->partitions : fitting > 0 ? (int)fitting : 1;
    for (int i = 0; i < count; i++)
        FR_TRY(open_one(&s->in[i], core, s->block_rows, error));
    return out >= 0 ? open_one(&s->out, core, s->block_rows, error) : FR_OK;
}

bool fr_neuron_streams_next(fr_neuron_streams *s, int *partition)
{
    *partition = s->started ? *partition + s->block_rows : 0;
    s->started = true;
    if (*partition >= s->partitions)
        return false;
    int left = s->partitions - *partition, rows = left < s->block_rows ? left : s->block_rows;
    s->block = (fr_neuron_block){.rows = rows, .count = s->count};
    for (int i = 0; i < s->inputs; i++) {
        fr_neuron_stream *in = &s->in[i];
        in->at = in->direct ? (float *)(void *)fr_neuron_lane_base(&in->lanes, *partition) : in->buffer;
        for (int r = 0; !in->direct && r < rows; r++) {
            float *row = in->buffer + r * in->stride;
            const float *got = fr_neuron_row(&in->lanes, *partition + r, row);
            if (got != row)
                memcpy(row, got, (size_t)s->count * sizeof *row);
        }
    }
    s->out.at = s->out.buffer;
    if (s->out.direct && s->out.lanes.row.base)
        s->out.at = (float *)(void *)fr_neuron_lane_base(&s->out.lanes, *partition);
    return true;
}

void fr_neuron_streams_done(fr_neuron_streams *s, int partition)
{
    for (int64_t r = 0; !s->out.direct && r < s->block.rows; r++)
        fr_neuron_put_row(&s->out.lanes, partition + (int)r, s->out.buffer + r * s->out.stride);
}

void fr_neuron_column_read(fr_neuron_column_values *column, const fr_neuron *core,
                           const fr_neuron_argument *argument, int partitions)
{
    fr_neuron_scalars scalars = fr_neuron_scalars_of(core, argument);
    column->step = scalars.varies;
    column->value[0] = scalars.constant;
    bool plain =
        scalars.varies && scalars.lanes.dtype == FR_NEURON_FLOAT32 && scalars.lanes.partitions == partitions;
    for (int p = 0; scalars.varies && p < partitions; p++)
        column->value[p] = plain ? *(const float *)(const void *)fr_neuron_lane_base(&scalars.lanes, p)
                                 : fr_neuron_scalar(&scalars, p);
}

void fr_neuron_column_write(fr_neuron *core, const fr_neuron_call *call, int which, const float *values)
{
    if (!fr_neuron_operand(call, which))
        return;
    fr_neuron_lanes lanes = fr_neuron_lanes_of(core, &call->argument[which].view);
    for (int p = 0; p < lanes.partitions; p++)
        fr_neuron_put_row(&lanes, p, &values[p]);
}

void fr_neuron_widen(uint32_t *out, const void *in, int bytes, int64_t count)
{
    if (bytes == 4)
        memcpy(out, in, (size_t)count * 4);
    for (int64_t i = 0; bytes == 2 && i < count; i++)
        out[i] = ((const uint16_t *)in)[i];
    for (int64_t i = 0; bytes == 1 && i < count; i++)
        out[i] = ((const uint8_t *)in)[i];
}

void fr_neuron_narrow_words(void *out, const uint32_t *in, int bytes, int64_t count)
{
    if (bytes == 4)
        memcpy(out, in, (size_t)count * 4);
    for (int64_t i = 0; bytes == 2 && i < count; i++)
        ((uint16_t *)out)[i] = (uint16_t)in[i];
    for (int64_t i = 0; bytes == 1 && i < count; i++)
        ((uint8_t *)out)[i] = (uint8_t)in[i];
}
