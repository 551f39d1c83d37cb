/* time_band.c: how far a prediction may be off.
 *
 * No formula knows its own error; the only evidence is kernels whose time on a chip is published. A kernel is compared
 * with them by what it keeps busy: six shares of its predicted time. The band reaches over the five most alike, from the
 * smallest of published over predicted to the largest, and is never narrower than a tenth either way: two kernels can
 * keep the same engines busy and still differ in what the compiler does with them.
 */
#include "neuron/time_band.h"

#include <math.h>

enum { NEIGHBOURS = 5 };
static const double OTHER_CHIP = 0.25, LEAST = 0.10;

void fr_neuron_shares_of(const fr_neuron_machine *machine, const fr_neuron_timing *timing,
                         double share[FR_NEURON_SHARES])
{
    static const fr_neuron_engine engines[] = {FR_NEURON_TENSOR, FR_NEURON_VECTOR, FR_NEURON_SCALAR,
                                               FR_NEURON_GPSIMD, FR_NEURON_DMA};
    double total = timing->predicted_ns > 0 ? timing->predicted_ns : 1;
    for (int i = 0; i < FR_NEURON_SHARES - 1; i++)
        share[i] = timing->busy_ns[engines[i]] / total;
    /* Sync does nothing but trigger: its busy time counts the triggers, each of which takes the generator longer. */
    double triggers =
        machine->dma_static_issue_ns > 0 ? timing->busy_ns[FR_NEURON_SYNC] / machine->dma_static_issue_ns : 0;
    double made = machine->has_hardware_descriptors
                      ? machine->dma_dynamic_issue_ns * triggers +
                            machine->dma_dynamic_descriptor_ns * timing->dma_descriptors
                      : 0;
    share[FR_NEURON_SHARES - 1] = made < total ? made / total : 1;
}

static double distance_of(const fr_neuron_calibrated *shape, int generation,
                          const double share[FR_NEURON_SHARES])
{
    double sum = 0;
    for (int i = 0; i < FR_NEURON_SHARES; i++)
        sum += (shape->share[i] - share[i]) * (shape->share[i] - share[i]);
    double distance = sqrt(sum / FR_NEURON_SHARES) + (shape->generation == generation ? 0 : OTHER_CHIP);
    return distance < 1 ? distance : 1;
}

fr_neuron_band fr_neuron_band_of(const fr_neuron_machine *machine, const fr_neuron_timing *timing)
{
    int count, near[NEIGHBOURS], used = 0;
    const fr_neuron_calibrated *shapes = fr_neuron_calibrated_shapes(&count);
    double share[FR_NEURON_SHARES], far[NEIGHBOURS], low = 1 - LEAST, high = 1 + LEAST;
    fr_neuron_shares_of(machine, timing, share);
    for (int i = 0; i < count; i++) { /* insertion into the nearest few, in order of distance */
        double distance = distance_of(&shapes[i], machine->generation, share);
        int at = used < NEIGHBOURS ? used++ : NEIGHBOURS;
        if (at == NEIGHBOURS) {
            if (distance >= far[NEIGHBOURS - 1])
                continue;
            at--;
        }
        for (; at > 0 && far[at - 1] > distance; at--) {
            far[at] = far[at - 1];
            near[at] = near[at - 1];
        }
        far[at] = distance;
        near[at] = i;
    }
    for (int i = 0; i < used; i++) {
        low = fmin(low, shapes[near[i]].ratio);
        high = fmax(high, shapes[near[i]].ratio);
    }
    return (fr_neuron_band){.low_ns = low * timing->predicted_ns,
                            .high_ns = high * timing->predicted_ns,
                            .nearest = shapes[near[0]].name,
                            .nearest_ratio = shapes[near[0]].ratio,
                            .distance = far[0]};
}
