/* frontier/text.h: from files people have to rows of token ids, and back to text.
 *
 * Mental model. `data import` turns files into a data folder: corpus.json (what, from where, under which
 * hashes), tokenizer.json (Hugging Face format) and token shards train-*.tok, valid-*.tok. A loader reads a
 * folder and yields numbered rows of T+1 ids, the same rows on any number of threads. Every document byte of
 * an evaluation set is scored exactly once. docs: one BOS id, then the ids of the text; no end marker.
 *
 *     fr_tokenizer *tokenizer;
 *     fr_tokenizer_load(&tokenizer, "data/tokenizer.json", &error);
 *     int32_t ids[64];
 *     int64_t n = fr_tokenizer_encode(tokenizer, "Hello world", 11, ids, 64);
 *     fr_tokenizer_free(tokenizer);
 *
 * Thread rule: a tokenizer is immutable after it is made and may be shared by any number of threads.
 */
#ifndef FRONTIER_TEXT_H
#define FRONTIER_TEXT_H
#include "frontier/base.h"

/* ---- tokenizer ---------------------------------------------------------------------------------- */

/* Byte-level BPE. A trained one has ids 0..255 = the bytes, then the merges in the order they were made, then
 * the nine chat specials (<|bos|>, <|user_start|>, ...). One read from a file keeps the file's ids, gaps too.
 * Bytes that are not UTF-8 split as U+FFFD would, one character each, and always come back as they were.
 * The other kind, for models from elsewhere, is SentencePiece's BPE (Llama 1 and 2, llama2.c): the text with a
 * space in front is one chunk that starts as characters; a character that is no token becomes byte tokens. */
typedef struct fr_tokenizer fr_tokenizer;

typedef enum fr_byte_lengths {
    FR_LENGTHS_RAW,    /* a token counts its raw bytes; specials count 0 */
    FR_LENGTHS_DECODED /* older convention: decoded to a string with U+FFFD, then UTF-8 again; specials 0 */
} fr_byte_lengths;

/* Split patterns as texts: ours, GPT-2's (r50k), GPT-4's (cl100k). Any Perl-compatible one is legal. */
extern const char fr_pattern_builtin[], fr_pattern_gpt2[], fr_pattern_cl100k[];

/* Reads a Hugging Face tokenizer.json (byte-level BPE). Hostile input gives FR_BAD_DATA, never a crash. */
fr_status fr_tokenizer_load(fr_tokenizer **out, const char *path, fr_error *error);
/* The same from memory, for fuzzing; `origin` names it in errors. */
fr_status fr_tokenizer_parse(fr_tokenizer **out, const char *json, size_t bytes, const char *origin,
                             fr_error *error);
/* The same for a model of `vocab` ids, when the file names fewer: the others are unused, and the last becomes a
 * special <|unused|>, so that the tokenizer keeps its size when it is written. More ids than `vocab`: FR_BAD_DATA. */
fr_status fr_tokenizer_load_sized(fr_tokenizer **out, const char *path, int32_t vocab, fr_error *error);
/* Reads llama2.c's tokenizer file of exactly `vocab` tokens with scores; encodes and decodes as that program. */
fr_status fr_tokenizer_load_llama2c(fr_tokenizer **out, const char *path, int32_t vocab, fr_error *error);
/* The same from memory, for fuzzing; `origin` names it in errors. */
fr_status fr_tokenizer_parse_llama2c(fr_tokenizer **out, const void *bytes, size_t count, int32_t vocab,
                                     const char *origin, fr_error *error);
/* Reads a tiktoken rank file (base64 SPACE rank per line); pattern NULL = ours. Specials get the ids after
 * the last rank; a NULL among them leaves its id unused (cl100k: NULL, then <|endoftext|>). */
fr_status fr_tokenizer_load_tiktoken(fr_tokenizer **out, const char *path, const char *pattern,
                                     const char *const *specials, int special_count, fr_error *error);
/* Writes Hugging Face tokenizer.json: the same tokenizer gives the same bytes. */
fr_status fr_tokenizer_save(const fr_tokenizer *tokenizer, const char *path, fr_error *error);
/* The same into memory. */
fr_status fr_tokenizer_write(const fr_tokenizer *tokenizer, fr_buffer *out, fr_error *error);
void fr_tokenizer_free(fr_tokenizer *tokenizer);

int32_t fr_tokenizer_vocab(const fr_tokenizer *tokenizer); /* ids are 0..vocab-1, specials included */
/* <|bos|>, or what a file has: <|endoftext|>, <|begin_of_text|>, <s>, its first special; else -1. */
int32_t fr_tokenizer_bos(const fr_tokenizer *tokenizer);
/* Bytes that encode puts in front of a text: 1 (a space) in SentencePiece's kind, else 0. The first token after
 * the start of a text holds them, so it stands for so many bytes less of the text. */
int32_t fr_tokenizer_prefix(const fr_tokenizer *tokenizer);
/* Upper bound of ids for n bytes is n + prefix. Encodes text only: special strings are ordinary text. Returns
 * the number of ids, written up to `capacity`; any byte string is legal; -1 when memory runs out (or the split
 * pattern of an outside file exceeds PCRE2's limits). Lowest rank first, leftmost on ties, as tiktoken. */
int64_t fr_tokenizer_encode(const fr_tokenizer *tokenizer, const char *text, size_t bytes, int32_t *ids,
                            int64_t capacity);
/* The error to return when encode gave -1 for a text of so many bytes; `what` names the text. */
fr_status fr_tokenizer_encode_error(const fr_tokenizer *tokenizer, size_t bytes, const char *what,
                                    fr_error *error);
/* Appends the bytes of ids (specials as their text if `specials`, else nothing). Unknown ids: FR_BAD_DATA. */
fr_status fr_tokenizer_decode(const fr_tokenizer *tokenizer, const int32_t *ids, int64_t count, bool specials,
                              fr_buffer *out, fr_error *error);
/* Bytes of one token (not NUL-terminated), owned by the tokenizer; NULL for an id that names none. */
const char *fr_tokenizer_token(const fr_tokenizer *tokenizer, int32_t id, size_t *bytes);
/* What the token adds to a text behind the token `previous` (-1: at the start): its bytes, without the space
 * that encode put in front of the text. */
const char *fr_tokenizer_token_after(const fr_tokenizer *tokenizer, int32_t previous, int32_t id,
                                     size_t *bytes);
int32_t fr_tokenizer_special(const fr_tokenizer *tokenizer, const char *text); /* id or -1 */
/* Writes vocab int32 byte lengths. */
void fr_tokenizer_byte_lengths(const fr_tokenizer *tokenizer, fr_byte_lengths convention, int32_t *lengths);
/* SHA-256 over tokens, merges, pattern and specials: names the tokenizer in receipts. */
void fr_tokenizer_hash(const fr_tokenizer *tokenizer, char hex[65]);

/* Training. Text is fed document by document, each cropped to `document_crop` characters; then finish()
 * merges: always the pair with the largest count, ties to the smallest left, then right id. A text with too
 * few pairs gives a smaller vocabulary than asked. What is fed after `max_characters` is ignored. */
typedef struct fr_tokenizer_trainer fr_tokenizer_trainer;
typedef struct fr_tokenizer_options {
    int32_t vocab;          /* total ids, the nine specials included: at least 265, at most 1,048,576 */
    const char *pattern;    /* NULL: the built-in split pattern */
    int64_t document_crop;  /* characters; 0 = 10,000 */
    int64_t max_characters; /* 0 = 2e9; the crossing document is included */
    fr_pool *pool;          /* may be NULL; the result never depends on it */
    const fr_progress *progress;
} fr_tokenizer_options;
fr_status fr_tokenizer_trainer_create(fr_tokenizer_trainer **out, const fr_tokenizer_options *options,
                                      fr_error *error);
fr_status fr_tokenizer_trainer_feed(fr_tokenizer_trainer *trainer, const char *text, size_t bytes,
                                    fr_error *error);
fr_status fr_tokenizer_trainer_finish(fr_tokenizer_trainer *trainer, fr_tokenizer **out, fr_error *error);
void fr_tokenizer_trainer_free(fr_tokenizer_trainer *trainer);

/* ---- import ------------------------------------------------------------------------------------- */

/* How a .txt becomes documents. AUTO: with 20 or more .txt files a document per file, with fewer, blocks between
 * blank lines joined to at least 4 kB each (one book must not be one document: nothing could be held out). */
typedef enum fr_split_kind {
    FR_SPLIT_FILE,
    FR_SPLIT_BLANK_LINES, /* blocks between blank lines, joined until split_bytes (0 = each block alone) */
    FR_SPLIT_LINES,       /* every line that is not blank */
    FR_SPLIT_BYTES,       /* pieces of split_bytes, never inside a UTF-8 character */
    FR_SPLIT_AUTO
} fr_split_kind;
/* Rules. Line ends, NULs and invalid UTF-8 are kept byte for byte; only a UTF-8 byte-order mark at the start of a
 * file is removed. Two documents are the same when they are equal after ASCII case folding, runs of ASCII white
 * space becoming one space, and none at the ends; the same hash decides the split. In JSON the last of equal keys
 * counts, and an escaped lone surrogate becomes U+FFFD (counted as invalid UTF-8). Blank lines are separators. A
 * file with a UTF-16 mark is an error. A document (or JSON line) may have 256 MiB. Compressed files cut short give the
 * whole documents before the cut; damaged ones are an error. A .parquet gives one document per row of one column of
 * strings, nulls and empty rows counted; it is read by DuckDB's C library 1.2 to 2.x, opened at run time (missing:
 * FR_BAD_ENVIRONMENT), and a damaged or cut one is an error. */
typedef struct fr_import_options {
    const char *out_folder;
    const char *const *paths;        /* files and folders: .txt .jsonl, either with .gz or .zst, and .parquet */
    int path_count;
    const char *const *valid_paths;  /* when given these are the validation set; training copies are dropped */
    int valid_path_count;
    int32_t vocab;                   /* 0 = 8192 */
    const char *tokenizer_path;      /* reuse this tokenizer instead of training one */
    double valid_fraction;           /* by hash of the document; 0 = choose: 5 % up to 10 MB of text */
    fr_split_kind split;             /* how a .txt becomes documents */
    int64_t split_bytes;             /* for FR_SPLIT_BYTES, and the least size for FR_SPLIT_BLANK_LINES */
    const char *text_field;          /* .jsonl key; NULL = "text" */
    const char *column;              /* .parquet column; NULL = "text", else the only column of strings */
    const char *duckdb_path;         /* DuckDB's C library for .parquet; NULL = FRONTIER_DUCKDB, else the loader's path */
    const char *licence;             /* recorded; may be NULL */
    bool overwrite;                  /* otherwise an existing corpus.json is refused */
    fr_pool *pool;
    const fr_progress *progress;
} fr_import_options;

/* Everything that was not taken as it stood is counted here and, for the first 20 of each kind, named. */
typedef enum fr_import_kind {
    FR_IMPORT_DUPLICATE_TRAIN, FR_IMPORT_DUPLICATE_VALID, FR_IMPORT_IN_BOTH, /* dropped */
    FR_IMPORT_EMPTY, FR_IMPORT_BAD_JSON, FR_IMPORT_NO_TEXT, FR_IMPORT_NULL_TEXT, FR_IMPORT_TRUNCATED, /* dropped */
    FR_IMPORT_DUPLICATE_KEY, FR_IMPORT_INVALID_UTF8, FR_IMPORT_BOM, FR_IMPORT_NUL, FR_IMPORT_CRLF, /* kept */
    FR_IMPORT_UNKNOWN_FILE, /* skipped */
    FR_IMPORT_KINDS
} fr_import_kind;
typedef struct fr_import_summary {
    int64_t documents, bytes, tokens, dropped; /* kept documents of both splits; dropped of all kinds */
    int64_t train_documents, train_bytes, train_tokens;
    int64_t valid_documents, valid_bytes, valid_tokens;
    int32_t vocab_asked, vocab; /* a text with few pairs gives fewer entries than asked */
    int64_t counts[FR_IMPORT_KINDS];
    int note_count;
    struct { fr_import_kind kind; char where[256]; } notes[20 * FR_IMPORT_KINDS]; /* "path:line", in a .parquet "path:row" */
    double seconds;
} fr_import_summary;
const char *fr_import_kind_name(fr_import_kind kind);  /* "duplicate-train", ... */
const char *fr_import_kind_text(fr_import_kind kind);  /* "the same document again in training text, dropped" */
fr_status fr_import(const fr_import_options *options, fr_import_summary *summary, fr_error *error);

/* ---- fetch: real data from the web ---------------------------------------------------------------- */

/* ClimbMix in nanochat's 6,543 parquet shards, the last one validation; or DuckDB's C library, which reads them. Files are
 * resumed, retried, checked against the sizes and hashes that are known, and named only when whole; fetch.json in the
 * folder lists them with source and licence. Built without libcurl: FR_BAD_ENVIRONMENT. */
typedef enum fr_fetch_kind { FR_FETCH_CLIMBMIX, FR_FETCH_DUCKDB } fr_fetch_kind;
typedef struct fr_fetch_origin {
    const char *name, *source, *derived_from, *licence; /* derived_from may be NULL */
} fr_fetch_origin;
typedef struct fr_fetch_options {
    fr_fetch_kind kind;
    const char *out_folder;  /* climbmix: gets train/ and valid/; duckdb: gets libduckdb.so */
    int shards;              /* climbmix: training shards, from the first; the validation shard comes too */
    const char *url;         /* NULL: the usual place. climbmix: {index} stands for a shard's five digits */
    const char *sha256;      /* duckdb from another url: what the archive must have; NULL: not checked */
    bool verify;             /* also hash what is there already */
    int connections;         /* 1 to 4; 0 = 3 */
    int retries;             /* per file; negative = 6 */
    double stall, backoff;   /* seconds without data that end an attempt, 0 = 30; pause before the first retry, 0 = 1 */
    const fr_progress *progress;
} fr_fetch_options;
typedef struct fr_fetch_summary {
    int64_t fetched, kept, bytes; /* files, files that were there, bytes of the fetched */
    double seconds;
    char library[1200], version[40]; /* duckdb: the library, and what it says it is */
} fr_fetch_summary;
const fr_fetch_origin *fr_fetch_origin_of(fr_fetch_kind kind);
int fr_fetch_most_shards(void); /* training shards that exist */
const char *fr_fetch_address(const fr_fetch_options *options); /* where it will come from */
fr_status fr_fetch_size(const fr_fetch_options *options, int64_t *bytes, fr_error *error); /* duckdb: as the server says; -1 unsaid */
fr_status fr_fetch(const fr_fetch_options *options, fr_fetch_summary *summary, fr_error *error);

/* ---- corpus: an opened data folder ---------------------------------------------------------------- */

typedef enum fr_corpus_split { FR_TRAIN, FR_VALID } fr_corpus_split;
typedef struct fr_corpus fr_corpus;
/* Opens and verifies headers and counts of every shard; `verify` also their content, every id included. Without it a shard's
 * checksum is checked before its first document is copied. */
fr_status fr_corpus_open(fr_corpus **out, const char *folder, bool verify, fr_error *error);
void fr_corpus_free(fr_corpus *corpus);
const fr_tokenizer *fr_corpus_tokenizer(const fr_corpus *corpus);
const char *fr_corpus_hash(const fr_corpus *corpus);            /* SHA-256 of corpus.json: names the data */
const char *fr_corpus_folder(const fr_corpus *corpus);
int64_t fr_corpus_documents(const fr_corpus *corpus, fr_corpus_split split);
int64_t fr_corpus_tokens(const fr_corpus *corpus, fr_corpus_split split); /* BOS included */
int64_t fr_corpus_bytes(const fr_corpus *corpus, fr_corpus_split split);  /* raw document bytes */
double fr_corpus_floor_bpb(const fr_corpus *corpus);            /* built-in world: known floor; else NaN */
/* Copies document `index`'s ids, BOS first; returns the count (written up to capacity); -1: none, or a damaged shard. */
int64_t fr_corpus_document(const fr_corpus *corpus, fr_corpus_split split, int64_t index, int32_t *ids, int64_t capacity);

/* Raw bytes of a document's text (BOS counts none); -1 for an index that does not exist. */
int64_t fr_corpus_document_bytes(const fr_corpus *corpus, fr_corpus_split split, int64_t index);
/* Length in ids, BOS included; -1 for an index that does not exist. */
int64_t fr_corpus_document_tokens(const fr_corpus *corpus, fr_corpus_split split, int64_t index);

/* Evaluation sets by name: "valid" = whole validation split; "valid-2M" style names = a prefix of whole
 * documents reaching that many tokens; both listed in corpus.json with documents, bytes and text hash. */
typedef struct fr_eval_set {
    char name[64];
    int64_t documents, bytes, tokens;
    char text_sha256[65];
} fr_eval_set;
fr_status fr_corpus_eval_set(const fr_corpus *corpus, const char *name, fr_eval_set *set, fr_error *error); /* NULL name: "valid" */

/* Removes corpus.json, then the shards; other files stay (tokenizer.json too). No data folder there is fine. */
fr_status fr_corpus_remove(const char *folder, fr_error *error);
/* Checks one shard in memory (as the opener does, content checksum and every id included), for fuzzing. */
fr_status fr_corpus_check_shard(const void *bytes, size_t count, const char *origin, fr_error *error);

/* Shards are written through this (import and world use it). Header: magic, version, id width, counts, checksum;
 * then ids little-endian uint16 (vocab <= 65536) or uint32, then the document index. */
typedef struct fr_corpus_writer fr_corpus_writer;
/* Refuses a folder that has a corpus.json; fr_corpus_remove first when it is to be replaced. */
fr_status fr_corpus_writer_create(fr_corpus_writer **out, const char *folder, const fr_tokenizer *tokenizer, fr_error *error);
fr_status fr_corpus_writer_document(fr_corpus_writer *writer, fr_corpus_split split, const char *text, size_t bytes, fr_error *error);
/* `details` is a JSON object text merged into corpus.json (sources, licence, floor_bpb, ...); may be NULL. */
/* Finishing writes the open shards and, last of all, corpus.json: a folder without it is not a data folder. */
fr_status fr_corpus_writer_finish(fr_corpus_writer *writer, const char *details, fr_error *error);
void fr_corpus_writer_free(fr_corpus_writer *writer); /* abandons what was not finished */

/* ---- loader --------------------------------------------------------------------------------------- */

typedef enum fr_packing {
    FR_PACK_BEST_FIT, /* BOS-aligned best fit with a buffer of documents (baseline.md 4.3) */
    FR_PACK_STREAM    /* documents joined by BOS, cut into rows of T+1 ids with stride T: the evaluator's layout */
} fr_packing;
typedef struct fr_loader_options {
    fr_corpus_split split;
    fr_packing packing;
    int64_t context;      /* T; a row has T+1 ids */
    int64_t buffer;       /* best fit: documents held when choosing; 0 = 512 */
    int64_t pool_rows;    /* > 1: rows pass through a seeded shuffle pool of this size */
    bool mask_bos_target; /* targets that are BOS become -1 */
    uint64_t seed;        /* for the pool */
    bool once;            /* stop after one epoch (evaluation) instead of starting over */
    int64_t documents;    /* > 0: only the first so many documents of the split (an evaluation set); 0 = all */
    bool prefetch;        /* a background thread packs ahead; the rows are the same */
} fr_loader_options;
typedef struct fr_loader fr_loader;
fr_status fr_loader_create(fr_loader **out, const fr_corpus *corpus, const fr_loader_options *options, fr_error *error);
/* Fills `rows` rows: inputs and targets, each rows x T int32 (targets -1 = ignore). Rows are numbered globally from
 * 0; this call delivers the next ones. *got < rows only when `once` and the end is reached: then the
 * last row is padded with BOS inputs and ignored targets, and rows got..rows-1 are all padding. */
fr_status fr_loader_next(fr_loader *loader, int64_t rows, int32_t *inputs, int32_t *targets, int64_t *got, fr_error *error);
/* The same, and `documents` (rows x T) gets for each target the index of its document in the split; -1 where the
 * target is -1. So an evaluator adds nats per document. `documents` may be NULL. */
fr_status fr_loader_next_documents(fr_loader *loader, int64_t rows, int32_t *inputs, int32_t *targets, int32_t *documents,
                                   int64_t *got, fr_error *error);
/* Rows one epoch gives with `once` and stream packing: ceil((tokens - 1) / T); best fit: -1 (not known before). */
int64_t fr_loader_once_rows(const fr_loader *loader);
int64_t fr_loader_row(const fr_loader *loader);     /* number of the next row */
int64_t fr_loader_epoch(const fr_loader *loader);   /* whole epochs consumed: floor of fr_loader_epochs */
/* Cropped text counts as consumed. */
double fr_loader_epochs(const fr_loader *loader);   /* fraction of the corpus's tokens consumed so far */
/* Tokens one epoch yields through this packing, estimated by packing a sample without side effects. */
int64_t fr_loader_epoch_tokens(const fr_loader *loader);
/* Exact state for resume: a JSON text in the arena; restore makes the following rows identical. */
fr_status fr_loader_save(const fr_loader *loader, fr_arena *arena, char **json, fr_error *error);
/* The state in which row `row` is the next, be it past or to come: as if saved then. Costs a pass over the plans before
 * it; saving before every step, to be able to drop one, would cost far more with a large pool. */
fr_status fr_loader_save_row(const fr_loader *loader, int64_t row, fr_arena *arena, char **json, fr_error *error);
fr_status fr_loader_restore(fr_loader *loader, const char *json, fr_error *error);
void fr_loader_free(fr_loader *loader);

/* ---- the built-in world --------------------------------------------------------------------------- */

typedef struct fr_world_options {
    const char *out_folder;
    uint64_t seed;       /* the world: its people, places, facts, words */
    uint64_t docs_seed;  /* the documents: which of the world's sentences are said */
    int64_t bytes;       /* training text, about; validation adds 5 % or at most 2 MB more */
    int32_t vocab;       /* 0 = 2048 */
    bool overwrite;
    fr_pool *pool;
    const fr_progress *progress;
} fr_world_options;
typedef struct fr_world_summary {
    int64_t documents, bytes, tokens, word_types, patterns;
    double floor_bpb; /* bits of the choices given the world's facts, per validation byte; exact */
} fr_world_summary;
/* Writes tokenizer.json, shards, corpus.json and, under core/, the six tasks below. Equal options give equal bytes. */
fr_status fr_world_generate(const fr_world_options *options, fr_world_summary *summary, fr_error *error);
/* Document `index` of a split, appended to out; `bits` (may be NULL) gets the information of its choices. */
fr_status fr_world_document(uint64_t seed, uint64_t docs_seed, fr_corpus_split split, int64_t index, fr_buffer *out, double *bits, fr_error *error);
/* Six in-context tasks about the world's facts in CORE's file format (core.yaml, eval_meta_data.csv,
 * eval_data/world/x.jsonl), two of each kind. The items are new text, whatever documents were generated. */
fr_status fr_world_tasks(uint64_t seed, const char *out_folder, int items_per_task, fr_error *error);
/* Parses a document of this world and recovers every choice; appends a readable account and the bits. */
fr_status fr_world_explain(uint64_t seed, const char *text, size_t bytes, fr_buffer *out, double *bits, fr_error *error);

#endif
