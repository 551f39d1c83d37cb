/* text/import_report.h: counting and naming what an import did not take as it stood. */
#ifndef TEXT_IMPORT_REPORT_H
#define TEXT_IMPORT_REPORT_H
#include "frontier/text.h"

/* Counts one; the first 20 of a kind are noted as "path:line" (a long path keeps its end). */
void import_report(fr_import_summary *summary, fr_import_kind kind, const char *path, int64_t line);
bool import_kind_drops(fr_import_kind kind);

#endif
