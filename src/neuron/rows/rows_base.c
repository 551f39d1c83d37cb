/* Rows for any processor; the reference the other versions must equal bit for bit. */
#define FR_ROWS fr_neuron_rows_base
#define FR_ROWS_NAME "base"
#include "neuron/rows/rows_template.h"
