/* src/report/svg.c: one plot writer for every page.
 *
 * A plot maps data to a fixed 900 x 300 frame. Ticks fall on 1, 2 or 5 times a power of ten. A series longer than the
 * frame is wide is thinned by columns, keeping each column's lowest and highest point, so a spike of a single
 * step stays visible.
 */
#include <math.h>
#include <string.h>

#include "report/style.h"

enum { WIDTH = 900, HEIGHT = 300, LEFT = 64, RIGHT = 16, TOP = 34, BOTTOM = 44 };

typedef struct axis {
    double low, high, step;
} axis;

static double nice_step(double span, int ticks)
{
    double raw = span / ticks, power = pow(10, floor(log10(raw))), scaled = raw / power;
    return power * (scaled <= 1 ? 1 : scaled <= 2 ? 2 : scaled <= 5 ? 5 : 10);
}

static axis make_axis(double low, double high, int ticks, bool round_out)
{
    if (!(high > low)) { /* one value only */
        double pad = fabs(low) > 0 ? fabs(low) * 0.1 : 1;
        low -= pad;
        high = low + 2 * pad;
    }
    axis a = {low, high, nice_step(high - low, ticks)};
    if (round_out) {
        a.low = floor(low / a.step) * a.step;
        a.high = ceil(high / a.step) * a.step;
    }
    return a;
}

static bool finite_point(const fr_series *s, int64_t i)
{
    return isfinite(s->x[i]) && isfinite(s->y[i]);
}

static void find_range(const fr_plot *plot, double x[2], double y[2])
{
    x[0] = y[0] = INFINITY;
    x[1] = y[1] = -INFINITY;
    for (int s = 0; s < plot->series_count; s++)
        for (int64_t i = 0; i < plot->series[s].count; i++) {
            if (!finite_point(&plot->series[s], i))
                continue;
            x[0] = fmin(x[0], plot->series[s].x[i]);
            x[1] = fmax(x[1], plot->series[s].x[i]);
            y[0] = fmin(y[0], plot->series[s].y[i]);
            y[1] = fmax(y[1], plot->series[s].y[i]);
        }
    if (plot->y_line_name && isfinite(plot->y_line)) {
        y[0] = fmin(y[0], plot->y_line);
        y[1] = fmax(y[1], plot->y_line);
    }
    if (plot->from_zero)
        y[0] = fmin(y[0], 0);
}

static double to_x(const axis *a, double value)
{
    return LEFT + (value - a->low) / (a->high - a->low) * (WIDTH - LEFT - RIGHT);
}

static double to_y(const axis *a, double value)
{
    return HEIGHT - BOTTOM - (value - a->low) / (a->high - a->low) * (HEIGHT - TOP - BOTTOM);
}

static void tick_text(char *out, size_t size, double value, double step)
{
    if (fabs(value) < step * 1e-9)
        value = 0;
    if (fabs(value) >= 1e6 || (step < 1e-4 && value != 0))
        snprintf(out, size, "%.2g", value);
    else
        snprintf(out, size, "%.*f", step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9), value);
}

static void draw_axes(fr_buffer *out, const fr_plot *plot, const axis *x, const axis *y)
{
    char text[40];
    for (double v = ceil(x->low / x->step - 1e-9) * x->step; v <= x->high + x->step * 1e-6; v += x->step) {
        tick_text(text, sizeof text, v, x->step);
        fr_buffer_printf(out,
                         "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text x=\"%.1f\" "
                         "y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                         to_x(x, v), to_x(x, v), TOP, HEIGHT - BOTTOM, to_x(x, v), HEIGHT - BOTTOM + 16,
                         text);
    }
    for (double v = ceil(y->low / y->step - 1e-9) * y->step; v <= y->high + y->step * 1e-6; v += y->step) {
        tick_text(text, sizeof text, v, y->step);
        fr_buffer_printf(out,
                         "<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" "
                         "y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                         LEFT, WIDTH - RIGHT, to_y(y, v), to_y(y, v), LEFT - 6, to_y(y, v) + 4, text);
    }
    fr_buffer_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2,
                     HEIGHT - 8);
    fr_html_escape(out, plot->x_label ? plot->x_label : "");
    fr_buffer_printf(out, "</text>\n");
}

/* Each pixel column gives its first, lowest, highest and last point. */
static void draw_line(fr_buffer *out, const fr_series *s, const axis *x, const axis *y, int colour)
{
    fr_buffer_printf(out, "<path fill=\"none\" stroke=\"var(--s%d)\" stroke-width=\"1.8\" d=\"", colour);
    bool pen_down = false;
    for (int64_t i = 0; i < s->count;) {
        if (!finite_point(s, i)) {
            pen_down = false;
            i++;
            continue;
        }
        int column = (int)to_x(x, s->x[i]);
        double low = s->y[i], high = s->y[i], last = s->y[i];
        int64_t start = i;
        for (; i < s->count && finite_point(s, i) && (int)to_x(x, s->x[i]) == column; i++) {
            low = fmin(low, s->y[i]);
            high = fmax(high, s->y[i]);
            last = s->y[i];
        }
        double at = to_x(x, s->x[start]);
        fr_buffer_printf(out, "%c%.1f %.1f", pen_down ? 'L' : 'M', at, to_y(y, s->y[start]));
        if (i - start > 2)
            fr_buffer_printf(out, "L%.1f %.1fL%.1f %.1f", at, to_y(y, low), at, to_y(y, high));
        fr_buffer_printf(out, "L%.1f %.1f", to_x(x, s->x[i - 1]), to_y(y, last));
        pen_down = true;
    }
    fr_buffer_printf(out, "\"/>\n");
}

static void draw_points(fr_buffer *out, const fr_series *s, const axis *x, const axis *y, int colour)
{
    for (int64_t i = 0; i < s->count; i++)
        if (finite_point(s, i))
            fr_buffer_printf(out,
                             "<circle r=\"3.5\" fill=\"var(--s%d)\" cx=\"%.1f\" cy=\"%.1f\"><title>%.6g, "
                             "%.6g</title></circle>\n",
                             colour, to_x(x, s->x[i]), to_y(y, s->y[i]), s->x[i], s->y[i]);
}

static void draw_legend(fr_buffer *out, const fr_plot *plot)
{
    double at = LEFT + 260;
    for (int s = 0; s < plot->series_count && plot->series_count > 1; s++) {
        const char *name = plot->series[s].name ? plot->series[s].name : "";
        fr_buffer_printf(out,
                         "<rect x=\"%.0f\" y=\"12\" width=\"12\" height=\"3\" fill=\"var(--s%d)\"/><text "
                         "x=\"%.0f\" y=\"18\">",
                         at, s % 8, at + 16);
        fr_html_escape(out, name);
        fr_buffer_printf(out, "</text>\n");
        at += 34 + 7.0 * (double)strlen(name);
    }
}

static void draw_level(fr_buffer *out, const fr_plot *plot, const axis *y)
{
    if (!plot->y_line_name || !isfinite(plot->y_line))
        return;
    double at = to_y(y, plot->y_line);
    fr_buffer_printf(out,
                     "<line class=\"a\" stroke-dasharray=\"5 4\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" "
                     "y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
                     LEFT, WIDTH - RIGHT, at, at, WIDTH - RIGHT - 4, at - 5);
    fr_html_escape(out, plot->y_line_name);
    fr_buffer_printf(out, " %.4g</text>\n", plot->y_line);
}

static void begin_svg(fr_buffer *out, const char *title, int height)
{
    fr_buffer_printf(out, "<svg role=\"img\" viewBox=\"0 0 %d %d\" aria-label=\"", WIDTH, height);
    fr_html_escape(out, title);
    fr_buffer_printf(out, "\"><text class=\"t\" x=\"%d\" y=\"18\">", LEFT);
    fr_html_escape(out, title);
    fr_buffer_printf(out, "</text>\n");
}

void fr_plot_svg(fr_buffer *out, const fr_plot *plot)
{
    double xr[2], yr[2];
    char title[200];
    find_range(plot, xr, yr);
    if (xr[0] > xr[1]) {
        fr_buffer_printf(out, "<p>");
        fr_html_escape(out, plot->title);
        fr_buffer_printf(out, ": no data</p>\n");
        return;
    }
    axis x = make_axis(xr[0], xr[1], 9, false), y = make_axis(yr[0], yr[1], 5, true);
    snprintf(title, sizeof title, "%s%s%s%s", plot->title, plot->y_label ? " (" : "",
             plot->y_label ? plot->y_label : "", plot->y_label ? ")" : "");
    begin_svg(out, title, HEIGHT);
    draw_axes(out, plot, &x, &y);
    draw_level(out, plot, &y);
    for (int s = 0; s < plot->series_count; s++)
        (plot->series[s].points ? draw_points : draw_line)(out, &plot->series[s], &x, &y, s % 8);
    draw_legend(out, plot);
    fr_buffer_printf(out, "</svg>\n");
}

void fr_bars_svg(fr_buffer *out, const char *title, const char *unit, const fr_part *parts, int count)
{
    double total = 0, most = 0;
    int height = 40 + 22 * count;
    for (int i = 0; i < count; i++) {
        total += parts[i].value;
        most = fmax(most, parts[i].value);
    }
    begin_svg(out, title, height);
    for (int i = 0; i < count; i++) {
        double width = most > 0 ? parts[i].value / most * 480 : 0, y = 32 + 22 * i;
        fr_buffer_printf(out, "<text x=\"190\" y=\"%.0f\" text-anchor=\"end\">", y + 12);
        fr_html_escape(out, parts[i].name);
        fr_buffer_printf(out,
                         "</text><rect x=\"198\" y=\"%.0f\" width=\"%.1f\" height=\"15\" rx=\"2\" "
                         "fill=\"var(--s0)\"/><text x=\"%.1f\" y=\"%.0f\">%.3g ",
                         y, width, 204 + width, y + 12, parts[i].value);
        fr_html_escape(out, unit);
        fr_buffer_printf(out, ", %.1f %%</text>\n", total > 0 ? 100 * parts[i].value / total : 0);
    }
    fr_buffer_printf(out, "</svg>\n");
}

/* ---- levels ------------------------------------------------------------------------------------------- */

enum { NAMES = 290, ROW = 22 }; /* where bars may begin; height of one */

static axis level_axis(const fr_level *levels, int count)
{
    double low = 0, high = 0;
    for (int i = 0; i < count; i++) {
        double error = isfinite(levels[i].error) ? levels[i].error : 0;
        if (!isfinite(levels[i].value))
            continue;
        low = fmin(low, levels[i].value - error);
        high = fmax(high, levels[i].value + error);
    }
    return make_axis(low, high, 6, true);
}

static double level_at(const axis *a, double value)
{
    return NAMES + (value - a->low) / (a->high - a->low) * (WIDTH - RIGHT - 60 - NAMES);
}

static void draw_level_bar(fr_buffer *out, const axis *a, const fr_level *level, double y)
{
    fr_buffer_printf(out, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">", NAMES - 8, y + 12);
    fr_html_escape(out, level->name);
    fr_buffer_printf(out, "</text>");
    if (!isfinite(level->value)) {
        fr_buffer_printf(out, "<text x=\"%.1f\" y=\"%.0f\">no score</text>\n", level_at(a, 0) + 6, y + 12);
        return;
    }
    double zero = level_at(a, 0), end = level_at(a, level->value), tip = fmax(zero, end);
    fr_buffer_printf(out,
                     "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"15\" rx=\"2\" fill=\"var(--s%d)\"/>",
                     fmin(zero, end), y, fabs(end - zero), level->value < 0);
    if (isfinite(level->error) && level->error > 0) {
        double from = level_at(a, level->value - level->error), to = level_at(a, level->value + level->error);
        fr_buffer_printf(out, "<path class=\"a\" d=\"M%.1f %.1fH%.1f\"/>", from, y + 7.5, to);
        tip = fmax(tip, to);
    }
    fr_buffer_printf(out, "<text x=\"%.1f\" y=\"%.0f\">%.3f</text>\n", tip + 6, y + 12, level->value);
}

void fr_levels_svg(fr_buffer *out, const char *title, const fr_level *levels, int count)
{
    axis a = level_axis(levels, count);
    int bottom = 30 + ROW * count;
    begin_svg(out, title, bottom + 26);
    for (double tick = a.low; tick <= a.high + a.step / 2; tick += a.step) {
        double x = level_at(&a, tick);
        fr_buffer_printf(out,
                         "<path class=\"%s\" d=\"M%.1f 26V%d\"/><text x=\"%.1f\" y=\"%d\" "
                         "text-anchor=\"middle\">%g</text>\n",
                         fabs(tick) < a.step / 2 ? "a" : "g", x, bottom, x, bottom + 16,
                         fabs(tick) < a.step / 2 ? 0 : tick);
    }
    for (int i = 0; i < count; i++)
        draw_level_bar(out, &a, &levels[i], 30 + ROW * i);
    fr_buffer_printf(out, "</svg>\n");
}

/* ---- files -------------------------------------------------------------------------------------------- */

void fr_svg_file(fr_buffer *out, const char *svg)
{
    const char *inside = strchr(svg, '>');
    if (!inside || strncmp(svg, "<svg ", 5) != 0)
        return;
    fr_buffer_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" ");
    fr_buffer_append(out, svg + 5, (size_t)(inside + 1 - (svg + 5)));
    fr_buffer_printf(out, "<style>");
    fr_page_style(out);
    fr_buffer_printf(out, "svg{background:var(--bg)}</style>%s", inside + 1);
}
