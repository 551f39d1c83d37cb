/* src/report/html.c: the one stylesheet and the one escaper of every page.
 *
 * A page must open from a mail attachment in ten years: no script, no font, no picture from elsewhere, colours as
 * variables so that light and dark screens both work. Text is escaped here and nowhere else.
 */
#include <string.h>

#include "report/style.h"

static const char stylesheet[] =
    ":root{--bg:#fff;--fg:#1b1f24;--soft:#5b6570;--line:#d8dee4;--card:#f6f8fa;"
    "--s0:#0b62c4;--s1:#c2410c;--s2:#15803d;--s3:#7e22ce;--s4:#a16207;--s5:#0e7490;--s6:#be185d;--s7:#4b5563}"
    "@media(prefers-color-scheme:dark){:root{--bg:#0e1116;--fg:#e6edf3;--soft:#9aa5b1;--line:#30363d;--card:#"
    "161b22;"
    "--s0:#58a6ff;--s1:#ff9b60;--s2:#56d364;--s3:#d2a8ff;--s4:#e3b341;--s5:#39c5cf;--s6:#ff7bb5;--s7:#b1bac4}"
    "}"
    "body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;margin:2rem "
    "auto;max-width:62rem;padding:0 1rem}"
    "h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 "
    ".6rem}p.sub{color:var(--soft);margin:.2rem 0 1.4rem}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.6rem .8rem}"
    ".card b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}"
    ".card span,.card i{color:var(--soft);font-size:.82rem;font-style:normal}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;max-width:100%}td,th{border-bottom:1px "
    "solid var(--line);"
    "padding:.25rem .9rem .25rem "
    "0;text-align:left;vertical-align:top;overflow-wrap:anywhere}td:first-child{white-space:nowrap}"
    "th{color:var(--soft);font-weight:600}"
    "pre{background:var(--card);border:1px solid "
    "var(--line);border-radius:8px;padding:.8rem;white-space:pre-wrap;overflow-wrap:anywhere}"
    "svg{width:100%;height:auto;margin:.4rem 0}svg text{fill:var(--soft);font:12px system-ui,sans-serif}"
    "svg .t{fill:var(--fg);font-weight:600}svg .g{stroke:var(--line)}svg .a{stroke:var(--soft)}";

void fr_page_style(fr_buffer *out)
{
    fr_buffer_printf(out, "%s", stylesheet);
}

/* Length of the valid UTF-8 sequence at text (1..4), or 0. */
static int utf8_length(const unsigned char *text)
{
    if (text[0] < 0x80)
        return 1;
    int length = text[0] >= 0xf0 && text[0] < 0xf5   ? 4
                 : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                 : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                                                     : 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

static const char *entity_for(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void fr_html_escape(fr_buffer *out, const char *text)
{
    while (*text) {
        const char *entity = entity_for(*text);
        int length = utf8_length((const unsigned char *)text);
        bool control = (unsigned char)*text < 0x20 && *text != '\n' && *text != '\t';
        if (entity)
            fr_buffer_append(out, entity, strlen(entity));
        else if (length == 0 || control)
            fr_buffer_append(out, "\xef\xbf\xbd", 3);
        else
            fr_buffer_append(out, text, (size_t)length);
        text += length ? length : 1;
    }
}

static void wrap(fr_buffer *out, const char *before, const char *text, const char *after)
{
    fr_buffer_append(out, before, strlen(before));
    fr_html_escape(out, text);
    fr_buffer_append(out, after, strlen(after));
}

void fr_page_begin(fr_buffer *out, const char *title, const char *subtitle)
{
    fr_buffer_printf(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><style>%s</style>",
        stylesheet);
    wrap(out, "<title>", title, "</title></head>\n<body>");
    wrap(out, "<h1>", title, "</h1>\n");
    wrap(out, "<p class=\"sub\">", subtitle ? subtitle : "", "</p>\n");
}

void fr_page_end(fr_buffer *out)
{
    fr_buffer_printf(out, "</body></html>\n");
}

void fr_page_heading(fr_buffer *out, const char *text)
{
    wrap(out, "<h2>", text, "</h2>\n");
}

void fr_page_paragraph(fr_buffer *out, const char *text)
{
    wrap(out, "<p>", text, "</p>\n");
}

void fr_page_preformatted(fr_buffer *out, const char *text)
{
    wrap(out, "<pre>", text, "</pre>\n");
}

void fr_page_cards(fr_buffer *out, const fr_card *cards, int count)
{
    fr_buffer_printf(out, "<div class=\"cards\">");
    for (int i = 0; i < count; i++) {
        wrap(out, "<div class=\"card\"><span>", cards[i].label, "</span>");
        wrap(out, "<b>", cards[i].value, "</b>");
        wrap(out, "<i>", cards[i].note ? cards[i].note : "", "</i></div>\n");
    }
    fr_buffer_printf(out, "</div>\n");
}

void fr_page_table(fr_buffer *out, const char *const *cells, int rows, int columns)
{
    fr_buffer_printf(out, "<table>\n");
    for (int r = 0; r < rows; r++) {
        fr_buffer_printf(out, "<tr>");
        for (int c = 0; c < columns; c++)
            wrap(out, r ? "<td>" : "<th>", cells[r * columns + c], r ? "</td>" : "</th>");
        fr_buffer_printf(out, "</tr>\n");
    }
    fr_buffer_printf(out, "</table>\n");
}
