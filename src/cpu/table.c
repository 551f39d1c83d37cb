/* The kernel tables and the choice between them.
 *
 * A table is a list of pointers to the kernels of one instruction set. Where the processor multiplies bf16
 * itself, the products of bf16 plans go through oneDNN instead of our fp32 tiles: those entries come last,
 * and later entries win. Every table but the reference forbids falling back to it: a missing kernel is an
 * error with a name, never a run that is silently a hundred times slower.
 */
#include "cpu/cpu_internal.h"
#include "cpu/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

static const fr_kernel_table reference_table = {.reference_only = true};

#if defined(__x86_64__)
#define TWO(a, i)  &(a)[i], &(a)[(i) + 1]
#define FOUR(a, i) TWO(a, i), TWO(a, (i) + 2)
#define KERNELS(isa)                                                                                         \
    FOUR(fr_kernels_elementwise_##isa, 0), FOUR(fr_kernels_elementwise_##isa, 4),                            \
        FOUR(fr_kernels_elementwise_##isa, 8), FOUR(fr_kernels_elementwise_##isa, 12),                       \
        TWO(fr_kernels_elementwise_##isa, 16),                                                               \
        FOUR(fr_kernels_norm_##isa, 0), TWO(fr_kernels_norm_##isa, 4), FOUR(fr_kernels_gate_##isa, 0),       \
        TWO(fr_kernels_attention_##isa, 0), FOUR(fr_kernels_product_##isa, 0), &fr_kernels_product_##isa[4]

enum { OWN = 35, BF16_PRODUCTS = 5 };

static const fr_kernel *const avx2_kernels[OWN] = {KERNELS(avx2)};
static const fr_kernel *const avx512_kernels[OWN + BF16_PRODUCTS] = {
    KERNELS(avx512), FOUR(fr_kernels_product_onednn, 0), &fr_kernels_product_onednn[4]};

static const fr_kernel_table avx2_table = {.kernels = avx2_kernels, .count = OWN, .forbid_fallback = true};
static const fr_kernel_table avx512_table = {
    .kernels = avx512_kernels, .count = OWN, .forbid_fallback = true};
static const fr_kernel_table bf16_table = {
    .kernels = avx512_kernels, .count = OWN + BF16_PRODUCTS, .forbid_fallback = true};
#else
static const fr_kernel_table avx2_table, avx512_table, bf16_table; /* never available */
#endif

/* In order of preference. */
typedef struct table_choice {
    const char *name;
    const fr_kernel_table *table;
    bool available;
} table_choice;
enum { CHOICES = 4 };

static void list_choices(table_choice choices[CHOICES])
{
    fr_cpu_features f;
    fr_cpu_ask(&f);
    choices[0] = (table_choice){"avx512_bf16", &bf16_table, f.avx512_bf16 || f.amx_bf16};
    choices[1] = (table_choice){"avx512", &avx512_table, f.avx512};
    choices[2] = (table_choice){"avx2", &avx2_table, f.avx2};
    choices[3] = (table_choice){"ref", &reference_table, true};
}

fr_status fr_cpu_kernels(const fr_kernel_table **table, fr_error *error)
{
    table_choice choices[CHOICES];
    const char *wanted = getenv("FRONTIER_KERNELS");
    list_choices(choices);
    for (int i = 0; i < CHOICES; i++) {
        if (wanted && *wanted ? strcmp(wanted, choices[i].name) != 0 : !choices[i].available)
            continue;
        if (!choices[i].available)
            return fr_error_set(error, FR_BAD_ENVIRONMENT, "FRONTIER_KERNELS",
                                "unset it to use the best this processor has",
                                "this processor cannot run the %s kernels", wanted);
        *table = choices[i].table;
        return FR_OK;
    }
    return fr_error_set(error, FR_BAD_ENVIRONMENT, "FRONTIER_KERNELS",
                        "use ref, avx2, avx512 or avx512_bf16, or unset it",
                        "there are no kernels named '%s'", wanted);
}

const char *fr_cpu_table_name(const fr_kernel_table *table)
{
    table_choice choices[CHOICES];
    list_choices(choices);
    for (int i = 0; i < CHOICES; i++)
        if (choices[i].table == table)
            return choices[i].name;
    return "own";
}

const fr_gemm_path *fr_cpu_product_path(const fr_kernel_table *table, fr_numerics numerics)
{
    if (!table || table->reference_only || numerics == FR_NUMERICS_F64)
        return NULL;
#if defined(__x86_64__)
    for (int i = table->count - 1; i >= 0; i--) {
        if (table->kernels[i] == &fr_kernels_product_onednn[0] && numerics == FR_NUMERICS_BF16)
            return &fr_gemm_path_onednn;
        if (table->kernels[i] == &fr_kernels_product_avx512[0])
            return &fr_gemm_path_avx512;
        if (table->kernels[i] == &fr_kernels_product_avx2[0])
            return &fr_gemm_path_avx2;
    }
#endif
    return NULL;
}

const fr_gemm_path *fr_cpu_gemm_path(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init(); /* not fr_cpu_ask: small products call this, and cpuid is slow in a virtual machine
                           */
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        return &fr_gemm_path_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &fr_gemm_path_avx2;
#endif
    return NULL;
}
