/* Rows for processors with AVX2 (the Makefile compiles this file for them). Elsewhere there is no such table. */
#if defined(__AVX2__)
#define FR_ROWS fr_neuron_rows_avx2
#define FR_ROWS_NAME "avx2"
#include "neuron/rows/rows_template.h"
#else
#include "neuron/rows/rows.h"
const fr_neuron_rows fr_neuron_rows_avx2 = {.name = NULL};
#endif
