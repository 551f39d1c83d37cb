/* What is known of the error of predictions: published times over predicted ones (calibration.c), and the shares of
 * time by which kernels are compared. */
#ifndef NEURON_TIME_BAND_H
#define NEURON_TIME_BAND_H
#include "frontier/neuron.h"

enum { FR_NEURON_SHARES = 6 }; /* Tensor, Vector, Scalar, GpSimd, DMA engines, descriptor generation */

typedef struct fr_neuron_calibrated {
    const char *name;
    int generation;
    double share[FR_NEURON_SHARES];
    double ratio; /* published over predicted, launch in both or in neither */
} fr_neuron_calibrated;
const fr_neuron_calibrated *fr_neuron_calibrated_shapes(int *count);
void fr_neuron_shares_of(const fr_neuron_machine *machine, const fr_neuron_timing *timing,
                         double share[FR_NEURON_SHARES]);

#endif
