/* What this processor can do. Detection asks the processor (and the operating system, for the wide registers
 * and the tile registers), never a name: the model name is for people. */
#include "cpu/cpu_internal.h"

#include <dnnl.h>
#include <string.h>

#define FR_TEXT_OF(x) #x
#define FR_TEXT(x)    FR_TEXT_OF(x)

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_amx_bf16(void)
{
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1))
        return false;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) /* OSXSAVE */
        return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3) == 3; /* the system saves tile registers */
}

static void read_name(char name[64])
{
    unsigned words[12] = {0};
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                         &words[4 * i + 3]))
            return;
    memcpy(name, words, sizeof words);
}

static void detect(fr_cpu_features *f)
{
    __builtin_cpu_init();
    f->avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    f->avx512 = f->avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    f->avx512_bf16 = f->avx512 && __builtin_cpu_supports("avx512bf16");
    f->amx_bf16 = f->avx512 && has_amx_bf16();
    read_name(f->name);
}
#else
static void detect(fr_cpu_features *f)
{
    snprintf(f->name, sizeof f->name, "not x86-64");
}
#endif

void fr_cpu_ask(fr_cpu_features *features)
{
    *features = (fr_cpu_features){.path = "ref", .best_numerics = FR_NUMERICS_F32};
    detect(features);
}

void fr_cpu_detect(fr_cpu_features *features)
{
    const fr_kernel_table *table;
    fr_cpu_ask(features);
    if (features->avx512_bf16 || features->amx_bf16)
        features->best_numerics = FR_NUMERICS_BF16;
    if (fr_cpu_kernels(&table, NULL) == FR_OK)
        features->path = fr_cpu_table_name(table);
}

const char *fr_cpu_library_version(void)
{
    return "oneDNN " FR_TEXT(DNNL_VERSION_MAJOR) "." FR_TEXT(DNNL_VERSION_MINOR) "." FR_TEXT(
        DNNL_VERSION_PATCH);
}
