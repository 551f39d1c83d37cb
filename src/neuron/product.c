/* The product in plain C, and the choice between it and the vector versions (kernels/). Four floats at a
 * time, in the compiler's own vector type: SSE2 and NEON have them. Without a fused multiply-add a product
 * of two fp32 numbers rounds once more than on other processors; narrower numbers multiply exactly, so for
 * them the bits are the same everywhere. */
#include "neuron/product.h"

#include <string.h>

typedef float four __attribute__((vector_size(16)));

static inline four load_four(const float *address)
{
    four value;
    memcpy(&value, address, sizeof value);
    return value;
}

static inline void store_four(float *address, four value)
{
    memcpy(address, &value, sizeof value);
}

#define VECTOR four
#define LANES 4
#define ROWS 4
#define VECTORS 2
#define load(address) load_four(address)
#define store(address, value) store_four(address, value)
#define broadcast(value) ((four){(value), (value), (value), (value)})
#define multiply_add(a, b, c) ((a) * (b) + (c))
#include "neuron/kernels/shared/product_kernels.h"

static const fr_neuron_kernels PLAIN = {
    "plain", product, bf16_to_float, bf16_from_float, fr_neuron_half_to_float, fr_neuron_half_from_float};

#if defined(__x86_64__)
/* fp16 conversions came before AVX2 in every line of processors. Asked for every row: this must not run cpuid. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const fr_neuron_kernels *fr_neuron_kernels_best(void)
{
    return has_avx512() ? &fr_neuron_kernels_avx512 : has_avx2() ? &fr_neuron_kernels_avx2 : &PLAIN;
}

const fr_neuron_kernels *fr_neuron_kernels_named(const char *name)
{
    if (strcmp(name, "avx512") == 0)
        return has_avx512() ? &fr_neuron_kernels_avx512 : NULL;
    if (strcmp(name, "avx2") == 0)
        return has_avx2() ? &fr_neuron_kernels_avx2 : NULL;
    return strcmp(name, "plain") == 0 ? &PLAIN : NULL;
}
#else
const fr_neuron_kernels *fr_neuron_kernels_best(void)
{
    return &PLAIN;
}

const fr_neuron_kernels *fr_neuron_kernels_named(const char *name)
{
    return strcmp(name, "plain") == 0 ? &PLAIN : NULL;
}
#endif
