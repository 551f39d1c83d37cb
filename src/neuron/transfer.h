/* What the instructions of the DMA engines share: walking two views in step, and the limits of descriptor
 * modes. */
#ifndef NEURON_TRANSFER_H
#define NEURON_TRANSFER_H
#include "neuron/core.h"
#include "neuron/walk.h"

/* Logical shape of a view, partitions first when it is on chip; returns the number of dimensions. */
int fr_neuron_shape(const fr_neuron_view *view, int64_t size[FR_NEURON_WALK_DIMS]);
/* All elements of a view without a list of rows, partition after partition, dimensions in the order `axes`
 * (NULL: as they are) from dimension `skip` on. */
fr_neuron_pattern fr_neuron_all(const fr_neuron_view *view, const int *axes, int skip);

/* Row `which` of a view whose leading dimension is a list of rows, or false when its number is outside. */
bool fr_neuron_listed_row(const fr_neuron_view *view, int64_t which, fr_neuron_view *row);
/* Every listed row is inside (always asked unless `skip`) and, when read, holds data. */
fr_status fr_neuron_check_rows(const fr_neuron *core, const fr_neuron_call *call, const fr_neuron_view *view,
                               const char *name, bool skip, bool read, fr_error *error);

/* dge_mode and engine as kernels give them. */
typedef enum fr_neuron_descriptors {
    FR_NEURON_DESCRIPTORS_ANY,
    FR_NEURON_DESCRIPTORS_SOFTWARE,
    FR_NEURON_DESCRIPTORS_HARDWARE,
    FR_NEURON_DESCRIPTORS_STATIC
} fr_neuron_descriptors;
#define FR_NEURON_DGE_MODES "unknown swdge hwdge none"
#define FR_NEURON_OOB_MODES "error skip"
fr_status fr_neuron_check_priority(const fr_neuron *core, const fr_neuron_call *call,
                                   const fr_neuron_argument *priority, fr_error *error);
fr_status fr_neuron_check_descriptors(const fr_neuron *core, const fr_neuron_call *call,
                                      fr_neuron_descriptors mode, bool cast, bool dynamic, bool rows,
                                      fr_error *error);
/* Trigger and `dynamic` of a transfer of this mode. */
void fr_neuron_price_descriptors(const fr_neuron *core, fr_neuron_descriptors mode, fr_neuron_engine engine,
                                 bool cast, bool rows, fr_neuron_cost *cost);

#endif
