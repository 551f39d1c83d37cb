/* tests/unit/test_report.c: pages escape everything, plots survive any numbers. */
#include "frontier/report.h"
#include "test.h"

static fr_buffer begin(void)
{
    fr_buffer b;
    fr_buffer_init(&b, 1 << 22);
    return b;
}

TEST(escaper_leaves_no_markup)
{
    fr_buffer b = begin();
    fr_html_escape(&b, "<script>\"a\"&'b'\xff\xc3\xa9\x01");
    CHECK_STR(b.data, "&lt;script&gt;&quot;a&quot;&amp;&#39;b&#39;\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
    fr_buffer_release(&b);
}

TEST(page_parts_escape_their_text)
{
    fr_buffer b = begin();
    fr_page_begin(&b, "<t>", "<s>");
    fr_page_cards(&b, &(fr_card){"<l>", "<v>", "<n>"}, 1);
    const char *cells[] = {"<a>", "<b>"};
    fr_page_table(&b, cells, 1, 2);
    fr_page_preformatted(&b, "<pre>");
    fr_page_end(&b);
    for (const char *bad = "tslvnab"; *bad; bad++) {
        char tag[4] = {'<', *bad, '>', 0};
        if (*bad != 'b') /* cards use <b> themselves */
            CHECK(strstr(b.data, tag) == NULL);
    }
    CHECK(!b.failed && strstr(b.data, "&lt;pre&gt;") != NULL);
    fr_buffer_release(&b);
}

TEST(plots_of_odd_numbers_hold_no_nan)
{
    double xs[][4] = {
        {0, 1, 2, 3}, {5, 5, 5, 5}, {0, NAN, 2, INFINITY}, {1e-9, 2e-9, 3e-9, 4e-9}, {-1e12, 0, 1, 1e12}};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        for (size_t j = 0; j < sizeof xs / sizeof *xs; j++)
            for (int64_t n = 0; n <= 4; n++) {
                fr_buffer b = begin();
                fr_series s = {"a<b", xs[i], xs[j], n, n % 2 == 0};
                fr_series both[2] = {s, s};
                fr_plot p = {.title = "t",
                             .x_label = "x",
                             .series = both,
                             .series_count = 2,
                             .from_zero = n == 3,
                             .y_line = 2,
                             .y_line_name = n == 4 ? "floor" : NULL};
                fr_plot_svg(&b, &p);
                CHECK(!b.failed && strstr(b.data, "nan") == NULL && strstr(b.data, "inf") == NULL);
                fr_buffer_release(&b);
            }
}

TEST(a_single_spike_survives_thinning)
{
    enum { N = 200000 };
    double *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = i == 77777 ? 100 : 1;
    }
    fr_buffer b = begin();
    fr_series s = {"s", x, y, N, false};
    fr_plot p = {.title = "t", .series = &s, .series_count = 1};
    fr_plot_svg(&b, &p);
    CHECK(strstr(b.data, " 34.0") != NULL); /* the top of the frame is reached */
    CHECK(b.length < 200000);
    fr_buffer_release(&b);
    free(x);
    free(y);
}

TEST(bars_of_nothing)
{
    fr_buffer b = begin();
    fr_bars_svg(&b, "t", "s", &(fr_part){"a", 0}, 1);
    CHECK(!b.failed && strstr(b.data, "nan") == NULL);
    fr_buffer_release(&b);
}

TEST(levels_go_both_ways_and_stand_alone)
{
    fr_buffer b = begin(), file = begin();
    const fr_level levels[] = {{"<up>", 0.4, 0.02}, {"down", -0.1, (double)NAN}, {"none", (double)NAN, (double)NAN}};
    fr_levels_svg(&b, "t", levels, 3);
    CHECK(!b.failed && !strstr(b.data, "nan") && !strstr(b.data, "<up>") && strstr(b.data, "no score"));
    CHECK(strstr(b.data, "0.400") && strstr(b.data, "-0.100"));
    fr_svg_file(&file, b.data);
    CHECK(strncmp(file.data, "<svg xmlns=", 11) == 0 && strstr(file.data, "<style>") && strstr(file.data, "</svg>"));
    fr_buffer_release(&b);
    fr_buffer_release(&file);
    b = begin();
    fr_levels_svg(&b, "t", levels + 2, 1);
    fr_levels_svg(&b, "t", NULL, 0);
    CHECK(!b.failed && !strstr(b.data, "nan") && !strstr(b.data, "inf"));
    fr_buffer_release(&b);
}

TEST_MAIN(report)
