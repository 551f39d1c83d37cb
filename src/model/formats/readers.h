/* The readers of foreign formats. On failure *out may be a model in part, which the caller frees. */
#ifndef FRONTIER_MODEL_FORMATS_READERS_H
#define FRONTIER_MODEL_FORMATS_READERS_H
#include "frontier/formats.h"

fr_status foreign_open_llama2c(fr_foreign **out, const char *path, const fr_foreign_options *options,
                               fr_error *error);
fr_status foreign_open_hf(fr_foreign **out, const char *path, const fr_foreign_options *options, fr_error *error);

#endif
