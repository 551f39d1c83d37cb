/* Multiply-adds that never leave the registers: what the arithmetic units can do. 12 independent chains hide
 * the latency. */
#include "cpu/cpu_internal.h"

double FR_ISA(fr_peak_loop)(int64_t rounds)
{
    enum { CHAINS = 12 };
    vf x[CHAINS], sum = v_set(0), factor = v_set(0.999f), step = v_set(1e-3f);
    for (int i = 0; i < CHAINS; i++)
        x[i] = v_set((float)i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            x[i] = v_fma(x[i], factor, step);
    }
    for (int i = 0; i < CHAINS; i++)
        sum = v_add(sum, x[i]);
    volatile float keep = v_total(sum);
    (void)keep;
    return 2.0 * CHAINS * FR_LANES * (double)rounds;
}
