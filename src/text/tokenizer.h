/* text/tokenizer.h: what a tokenizer is made of, for the files that make one.
 *
 * Four makers (training, tokenizer.json, tiktoken ranks, llama2.c's scores) share one path: begin with the number of ids and
 * the pattern, set tokens, index the pieces, add merges, finish. finish derives everything else, so that
 * two makers that set the same things get the same tokenizer and the same hash.
 *
 * A merge is (left, right) -> result at a rank; the lowest rank is applied first. Training and
 * tokenizer.json number them 0, 1, 2, ...; a rank file or llama2.c's file has no merges, only tokens, and
 * means: any two neighbours whose bytes joined are a token merge at that token's rank. Read like this all four
 * encode by the same code.
 */
#ifndef FRONTIER_TEXT_TOKENIZER_H
#define FRONTIER_TEXT_TOKENIZER_H
#include "frontier/text.h"
#include "text/pretokenizer.h"

enum {
    FR_TOKENIZER_VOCAB_LIMIT = 1 << 20,
    FR_TOKEN_MODEL = 1,   /* in the model's vocabulary */
    FR_TOKEN_ADDED = 2,   /* listed as an added token */
    FR_TOKEN_SPECIAL = 4, /* an added token that is control, not text */
    FR_TOKEN_RAW = 8,     /* its text in the file is not in the byte alphabet, so no bytes lead to it */
    FR_TOKEN_DIRECT = 16, /* a chunk with exactly these bytes encodes to this one id */
    FR_TOKEN_BYTE = 32,   /* SentencePiece's <0x41>: one byte of a character that is no token */
};

typedef struct fr_token {
    const uint8_t *bytes; /* NULL: no token has this id */
    uint32_t length;
    uint32_t flags;
} fr_token;

typedef struct fr_merge {
    int32_t rank, left, right, result;
} fr_merge;

typedef struct fr_piece_slot {
    uint32_t hash;
    int32_t id; /* -1: empty */
} fr_piece_slot;

typedef struct fr_merge_slot {
    uint64_t key; /* fr_bpe_pair_key; UINT64_MAX: empty */
    int32_t rank, result;
} fr_merge_slot;

struct fr_tokenizer {
    fr_arena arena; /* owns everything but the pattern */
    fr_split_pattern *pattern;
    fr_token *tokens;
    fr_merge *merges; /* ascending by rank, left, right */
    fr_piece_slot *pieces;
    fr_merge_slot *merge_table;
    int32_t *added; /* ids of added tokens, ascending */
    size_t piece_slots, merge_slots, longest_piece;
    int64_t merge_count;
    int32_t vocab, added_count, bos;
    bool whole_chunks;  /* a chunk that is a token is that token, whatever the merges say */
    bool sentencepiece; /* no split: see text.h; set before the pieces are indexed */
    int32_t byte_ids[256];
    char hash[65];
};

fr_status fr_tokenizer_begin(fr_tokenizer **out, int32_t vocab, const char *pattern, fr_error *error);
/* Copies the bytes; an id out of range or taken is FR_BAD_DATA. */
fr_status fr_tokenizer_set_token(fr_tokenizer *tokenizer, int32_t id, const void *bytes, size_t length,
                                 uint32_t flags, fr_error *error);
/* Puts the tokens that bytes can lead to into the piece table; each of the 256 bytes must be among them. */
fr_status fr_tokenizer_index_pieces(fr_tokenizer *tokenizer, fr_error *error);
/* Id of the piece with these bytes, or -1. */
int32_t fr_tokenizer_find(const fr_tokenizer *tokenizer, const uint8_t *bytes, size_t length);
/* Takes `merges` (copied, sorted) and completes the tokenizer. */
fr_status fr_tokenizer_finish(fr_tokenizer *tokenizer, const fr_merge *merges, int64_t count,
                              fr_error *error);

/* The specials of a trained tokenizer, appended after its merges in this order. */
enum { FR_CHAT_SPECIALS = 9 };
extern const char *const fr_chat_specials[FR_CHAT_SPECIALS];

/* ---- merging one chunk (bpe_encode.c) ------------------------------------------------------------ */

enum { FR_BPE_SHORT = 48 }; /* chunks up to this many bytes take the quadratic path, the longer the heap */

typedef struct fr_bpe_scratch {
    int32_t small[FR_BPE_SHORT];
    void *memory; /* for long chunks, grown as needed */
    size_t capacity;
} fr_bpe_scratch;

/* Ids of one chunk (in SentencePiece's kind: of a whole text, the space in front included) by merging alone;
 * *ids points into the scratch. -1 when memory runs out. */
int64_t fr_bpe_merge_chunk(const fr_tokenizer *tokenizer, fr_bpe_scratch *scratch, const uint8_t *bytes,
                           size_t count, const int32_t **ids);
void fr_bpe_scratch_release(fr_bpe_scratch *scratch);

/* ---- tokens that mean all their cuts (tokenizer_cuts.c) -------------------------------------------- */

/* Appends to `merges` (of fr_merge) the merges that lead to token `id`: one for each cut into two tokens. False:
 * memory is out. */
bool fr_tokenizer_add_cuts(const fr_tokenizer *tokenizer, int32_t id, int32_t rank, fr_buffer *merges);

#endif
