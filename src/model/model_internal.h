/* What the files of the model share: the one operator of its own that the model adds to the graph's. */
#ifndef FRONTIER_MODEL_INTERNAL_H
#define FRONTIER_MODEL_INTERNAL_H
#include "frontier/model.h"

fr_tensor *fr_scale(fr_graph *g, fr_tensor *x, fr_tensor *scale); /* scale x, scale 1 x 1; stream */
extern const fr_op fr_op_scale;

#endif
