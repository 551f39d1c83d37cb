/* fp16 as some files store weights: widening to fp32 is exact. */
#ifndef FRONTIER_MODEL_FORMATS_HALF_H
#define FRONTIER_MODEL_FORMATS_HALF_H
#include <math.h>
#include <stdint.h>

static inline float half_to_f32(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? ldexpf((float)fraction, -24)
                                      : ldexpf((float)(fraction + 1024), exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

#endif
