/* Text as words, and words as hashes that roll.
 *
 * What separates words, and capitals, change when text is copied from page to page; the words do not. A window of n
 * words has the hash sum of w_i B^(n-1-i) modulo 2^64, w_i being the hash of a word; it moves on by one word at the
 * price of two multiplications, whatever n is.
 */
#include "eval/scan_words.h"

static const uint64_t BASE = UINT64_C(0x9e3779b97f4a7c15);

static int folded(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c + 32;
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80 ? c : -1;
}

bool scan_next_word(scan_reader *r, scan_word *word)
{
    while (r->at < r->bytes && folded((unsigned char)r->text[r->at]) < 0)
        r->at++;
    if (r->at == r->bytes)
        return false;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    word->start = r->at;
    for (int c; r->at < r->bytes && (c = folded((unsigned char)r->text[r->at])) >= 0; r->at++)
        hash = (hash ^ (uint64_t)c) * UINT64_C(0x100000001b3);
    word->end = r->at;
    word->hash = (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return true;
}

void scan_window_init(scan_window *w, int words)
{
    *w = (scan_window){.words = words, .top = 1};
    for (int i = 1; i < words; i++)
        w->top *= BASE;
}

bool scan_window_add(scan_window *w, const scan_word *word)
{
    int place = (int)(w->seen % w->words);
    if (w->seen >= w->words)
        w->sum -= w->ring[place].hash * w->top;
    w->sum = w->sum * BASE + word->hash;
    w->ring[place] = *word;
    return ++w->seen >= w->words;
}

size_t scan_window_start(const scan_window *w)
{
    return w->ring[w->seen % w->words].start;
}

uint64_t scan_window_hash(const scan_window *w)
{
    uint64_t x = w->sum ^ (uint64_t)w->words * BASE;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}
