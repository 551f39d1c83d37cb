/* Rows for processors with AVX-512 (the Makefile compiles this file for them). Elsewhere there is no such table. */
#if defined(__AVX512F__)
#define FR_ROWS fr_neuron_rows_avx512
#define FR_ROWS_NAME "avx512"
#include "neuron/rows/rows_template.h"
#else
#include "neuron/rows/rows.h"
const fr_neuron_rows fr_neuron_rows_avx512 = {.name = NULL};
#endif
