/* text/unzip.h: one member of a zip archive. See unzip.c. */
#ifndef TEXT_UNZIP_H
#define TEXT_UNZIP_H
#include "frontier/text.h"

/* Writes the member of this exact name to `target`, durably and only if its checksum fits. */
fr_status unzip_member(const char *archive, const char *member, const char *target, int64_t most_bytes, fr_error *error);

#endif
