/* frontier/report.h: pages and plots, self-contained: one HTML file, no script, no network.
 *
 * Mental model. A page is a buffer: begin, append cards, tables and plots, end. Every text goes through one
 * escaper. A plot is series of points; it becomes an SVG drawn for both light and dark screens.
 *
 *     fr_buffer page;
 *     fr_buffer_init(&page, 64 << 20);
 *     fr_page_begin(&page, "run 7", "trained 60 s");
 *     fr_plot plot = {.title = "loss", .x_label = "seconds", .series = &loss, .series_count = 1};
 *     fr_plot_svg(&page, &plot);
 *     fr_page_end(&page);
 */
#ifndef FRONTIER_REPORT_H
#define FRONTIER_REPORT_H
#include "frontier/base.h"
#include "frontier/neuron.h"

void fr_html_escape(fr_buffer *out, const char *text); /* & < > " ' ; invalid UTF-8 bytes become U+FFFD */
void fr_page_begin(fr_buffer *out, const char *title, const char *subtitle);
void fr_page_end(fr_buffer *out);
void fr_page_heading(fr_buffer *out, const char *text);
void fr_page_paragraph(fr_buffer *out, const char *text);
void fr_page_preformatted(fr_buffer *out, const char *text);

typedef struct fr_card {
    const char *label, *value, *note; /* note may be NULL */
} fr_card;
void fr_page_cards(fr_buffer *out, const fr_card *cards, int count);
/* rows x columns texts, row-major; the first row is the head. */
void fr_page_table(fr_buffer *out, const char *const *cells, int rows, int columns);

typedef struct fr_series {
    const char *name;
    const double *x, *y; /* non-finite points are gaps */
    int64_t count;
    bool points; /* dots instead of a line */
} fr_series;
typedef struct fr_plot {
    const char *title, *x_label, *y_label;
    const fr_series *series;
    int series_count; /* at most 8 */
    bool from_zero;   /* the y axis starts at 0 */
    double y_line;    /* a dashed level with `y_line_name`; NaN or no name = none */
    const char *y_line_name;
} fr_plot;
/* Long series are thinned to what a screen shows, keeping each column's extremes. */
void fr_plot_svg(fr_buffer *out, const fr_plot *plot);
/* A horizontal bar per part, largest first, with its share. */
typedef struct fr_part {
    const char *name;
    double value;
} fr_part;
void fr_bars_svg(fr_buffer *out, const char *title, const char *unit, const fr_part *parts, int count);
/* A bar per value from a common zero to the left or the right, with its standard error; in the order given. */
typedef struct fr_level {
    const char *name;
    double value, error; /* NaN: no value, no error */
} fr_level;
void fr_levels_svg(fr_buffer *out, const char *title, const fr_level *levels, int count);
/* A drawing of one of the functions above as a file of its own, with the page's colours. */
void fr_svg_file(fr_buffer *out, const char *svg);

/* The predicted timeline of what `core` has recorded, as one page to look into: a row per engine and DMA queue, memory
 * in use, source lines beside it; zoom, search, hover. The one page with a script; still no network. */
fr_status fr_neuron_page_write(const fr_neuron *core, const char *title, const char *path, fr_error *error);

#endif
