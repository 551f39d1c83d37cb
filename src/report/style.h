/* The one stylesheet, shared by the writer of pages and the writer of drawings. */
#ifndef FRONTIER_REPORT_STYLE_H
#define FRONTIER_REPORT_STYLE_H
#include "frontier/report.h"

void fr_page_style(fr_buffer *out);

#endif
