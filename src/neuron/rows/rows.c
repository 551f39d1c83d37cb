/* Which version of the rows to use: the widest registers this processor has. A version that was not compiled for this
 * kind of processor has no name. FRONTIER_KERNELS is not consulted: all versions give the same bits. */
#include "neuron/rows/rows.h"

#include <string.h>

#if defined(__x86_64__)
static bool can_run(const fr_neuron_rows *rows)
{
    __builtin_cpu_init();
    if (rows == &fr_neuron_rows_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return rows == &fr_neuron_rows_avx2 ? __builtin_cpu_supports("avx2") : true;
}
#else
static bool can_run(const fr_neuron_rows *rows)
{
    return rows == &fr_neuron_rows_base;
}
#endif

static const fr_neuron_rows *const versions[] = {&fr_neuron_rows_avx512, &fr_neuron_rows_avx2,
                                                 &fr_neuron_rows_base};
enum { VERSIONS = sizeof versions / sizeof versions[0] };

const fr_neuron_rows *fr_neuron_rows_best(void)
{
    for (int i = 0; i < VERSIONS; i++)
        if (versions[i]->name && can_run(versions[i]))
            return versions[i];
    return &fr_neuron_rows_base;
}

const fr_neuron_rows *fr_neuron_rows_named(const char *name)
{
    for (int i = 0; i < VERSIONS; i++)
        if (versions[i]->name && strcmp(versions[i]->name, name) == 0 && can_run(versions[i]))
            return versions[i];
    return NULL;
}
