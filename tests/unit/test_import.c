/* Imports of everything people have: each kind of bad input by count, place, message and status; copies; splits; the same
 * folder for any number of threads; nothing left behind by failures. */
#include "test.h"
#include "text_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static fr_import_summary summary;
static fr_error error;

/* Imports into folder `name` with the smallest tokenizer. */
static fr_status import(const char *name, fr_import_options options, const char *const *paths, int count)
{
    memset(&error, 0, sizeof error);
    options.out_folder = fixture_path(name);
    options.paths = paths;
    options.path_count = count;
    options.vocab = options.tokenizer_path ? 0 : 300;
    fr_status status = fr_import(&options, &summary, &error);
    CHECK((status == FR_OK) == fixture_exists(options.out_folder, "corpus.json") || options.overwrite);
    return status;
}

static fr_status import_one(const char *name, fr_split_kind split, const char *path)
{
    return import(name, (fr_import_options){.split = split, .split_bytes = split == FR_SPLIT_BYTES ? 8 : 0}, &path, 1);
}

/* All documents of a folder as one sorted list of decoded texts joined by '|'. */
static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *texts_of(const char *name, int splits)
{
    static char joined[1 << 16];
    char *texts[256];
    int count = 0;
    fr_corpus *corpus = NULL;
    CHECK_OK(fr_corpus_open(&corpus, fixture_path(name), true, &error));
    joined[0] = '\0';
    for (int split = 0; corpus && split < 2; split++)
        for (int64_t i = 0; (splits >> split & 1) && i < fr_corpus_documents(corpus, (fr_corpus_split)split); i++) {
            static int32_t ids[1 << 14];
            int64_t n = fr_corpus_document(corpus, (fr_corpus_split)split, i, ids, 1 << 14);
            fr_buffer text;
            fr_buffer_init(&text, 0);
            CHECK_OK(fr_tokenizer_decode(fr_corpus_tokenizer(corpus), ids, n, false, &text, &error));
            CHECK_INT(text.length, fr_corpus_document_bytes(corpus, (fr_corpus_split)split, i));
            for (size_t c = 0; c < text.length; c++)
                text.data[c] = text.data[c] == '\0' ? '0' : text.data[c];
            texts[count++] = strdup(text.data);
            fr_buffer_release(&text);
        }
    qsort(texts, (size_t)count, sizeof *texts, compare_texts);
    for (int i = 0; i < count; i++) {
        strcat(strcat(joined, i ? "|" : ""), texts[i]);
        free(texts[i]);
    }
    fr_corpus_free(corpus);
    return joined;
}

static void check_note(fr_import_kind kind, int64_t count, const char *where)
{
    CHECK_INT(summary.counts[kind], count);
    for (int i = 0; i < summary.note_count; i++)
        if (summary.notes[i].kind == kind && strstr(summary.notes[i].where, where))
            return;
    printf("# no note of %s at %s\n", fr_import_kind_name(kind), where);
    CHECK(count == 0);
}

/* ---- splits of text ---- */

TEST(lines_blocks_pieces_and_files)
{
    CHECK_OK(import_one("lines", FR_SPLIT_LINES, fixture_text("lines.txt", "one\n\ntwo\r\n   \nthree")));
    CHECK_STR(texts_of("lines", 3), "one|three|two");
    CHECK_OK(import_one("blocks", FR_SPLIT_BLANK_LINES, fixture_text("blocks.txt", "\n\n a b\nc\n\n\n \t\nd\n\ne\n")));
    CHECK_STR(texts_of("blocks", 3), " a b\nc|d|e");
    CHECK_OK(import_one("pieces", FR_SPLIT_BYTES, fixture_text("pieces.txt", "12345678abcdefg\xC3\xA9xyz1234")));
    CHECK_STR(texts_of("pieces", 3), "12345678|4|abcdefg|\xC3\xA9xyz123");
    const char *files[2] = {fixture_text("a.txt", "first\n\nfile\n"), fixture_text("b.txt", "second file")};
    CHECK_OK(import("files", (fr_import_options){.split = FR_SPLIT_FILE}, files, 2));
    CHECK_STR(texts_of("files", 3), "first\n\nfile\n|second file");
    const char *path = fixture_text("joined.txt", "aaa\n\nbbb\n\nccccc\n\nd");
    CHECK_OK(import("joined", (fr_import_options){.split = FR_SPLIT_BLANK_LINES, .split_bytes = 6}, &path, 1));
    CHECK_STR(texts_of("joined", 3), "aaa\n\nbbb|ccccc\n\nd");
}

/* A text longer than the reader's window, with a block boundary at every possible place around its edge. */
TEST(blocks_do_not_depend_on_the_window)
{
    enum { SIZE = 3 << 20 };
    char *text = malloc(SIZE + 1);
    int64_t want = 0;
    for (int i = 0; i < SIZE; i += 64) {
        memset(text + i, 'x', 64);
        snprintf(text + i, 16, "%d", i);
        text[i + strlen(text + i)] = 'x';
        memcpy(text + i + 40 + (i / 64) % 16, "\n \t\n", 4);
        want++;
    }
    CHECK_OK(import_one("window", FR_SPLIT_BLANK_LINES, fixture_write("window.txt", text, SIZE)));
    CHECK_INT(summary.documents, want + 1);
    CHECK_INT(summary.dropped, 0);
    free(text);
}

TEST(auto_splits_few_texts_and_keeps_many)
{
    char *book = malloc(60001);
    for (int i = 0; i < 600; i++)
        snprintf(book + i * 100, 101, "%98d\n\n", i);
    CHECK_OK(import_one("book", FR_SPLIT_AUTO, fixture_write("book.txt", book, 60000)));
    CHECK(summary.documents >= 12 && summary.documents <= 15);
    const char *folder = fixture_folder("many");
    for (int i = 0; i < 25; i++) {
        char name[64];
        snprintf(name, sizeof name, "many/%02d.txt", i);
        fixture_write(name, book + i * 2000, 2000);
    }
    CHECK_OK(import_one("many-out", FR_SPLIT_AUTO, folder));
    CHECK_INT(summary.documents, 25);
    free(book);
}

/* ---- JSON lines ---- */

TEST(json_lines_and_their_faults_are_counted_and_named)
{
    static const char lines[] = "{\"text\":\"good one\"}\n"                     /* 1 */
                                "\n"                                           /* 2: separator */
                                "{\"text\":null}\n"                            /* 3 */
                                "{\"text\":\"cut\n"                            /* 4 */
                                "{\"other\":1}\n"                              /* 5 */
                                "{\"text\":\"a\",\"text\":\"last wins\"}\r\n"  /* 6 */
                                "{\"text\":\" \\n \"}\n"                       /* 7: empty */
                                "{\"text\":\"nul \\u0000 kept\"}\n"            /* 8 */
                                "{\"text\":\"line\\r\\nends\"}\n"              /* 9 */
                                "{\"text\":\"caf\xE9\"}\n"                     /* 10 */
                                "{\"text\":\"lone \\ud800\"}\n"                /* 11 */
                                "{\"text\":\"GOOD  ONE\"}\n"                   /* 12: copy of 1 */
                                "{\"text\":\"\"}";                             /* 13 */
    CHECK_OK(import_one("faults", FR_SPLIT_FILE, fixture_text("faults.jsonl", lines)));
    check_note(FR_IMPORT_NULL_TEXT, 1, "faults.jsonl:3");
    check_note(FR_IMPORT_BAD_JSON, 1, "faults.jsonl:4");
    check_note(FR_IMPORT_NO_TEXT, 1, "faults.jsonl:5");
    check_note(FR_IMPORT_DUPLICATE_KEY, 1, "faults.jsonl:6");
    check_note(FR_IMPORT_EMPTY, 2, "faults.jsonl:7");
    check_note(FR_IMPORT_EMPTY, 2, "faults.jsonl:13");
    check_note(FR_IMPORT_NUL, 1, "faults.jsonl:8");
    check_note(FR_IMPORT_CRLF, 1, "faults.jsonl:9");
    check_note(FR_IMPORT_INVALID_UTF8, 2, "faults.jsonl:10");
    check_note(FR_IMPORT_INVALID_UTF8, 2, "faults.jsonl:11");
    CHECK_INT(summary.counts[FR_IMPORT_DUPLICATE_TRAIN] + summary.counts[FR_IMPORT_DUPLICATE_VALID], 1);
    CHECK_INT(summary.documents, 6);
    CHECK_INT(summary.dropped, 6);
    CHECK_STR(texts_of("faults", 3), "caf\xE9|good one|last wins|line\r\nends|lone \xEF\xBF\xBD|nul 0 kept");
    const char *path = fixture_text("field.jsonl", "{\"body\":\"one\",\"text\":\"x\"}\n{\"body\":\"two\"}\n");
    CHECK_OK(import("field", (fr_import_options){.text_field = "body"}, &path, 1));
    CHECK_STR(texts_of("field", 3), "one|two");
}

TEST(notes_stop_at_twenty_of_a_kind)
{
    char lines[4096] = "{\"text\":\"a\"}\n{\"text\":\"b\"}\n";
    for (int i = 0; i < 50; i++)
        strcat(lines, "{\"text\":null}\n{bad\n");
    CHECK_OK(import_one("notes", FR_SPLIT_FILE, fixture_text("notes.jsonl", lines)));
    CHECK_INT(summary.counts[FR_IMPORT_NULL_TEXT], 50);
    CHECK_INT(summary.counts[FR_IMPORT_BAD_JSON], 50);
    CHECK_INT(summary.note_count, 40);
    for (int kind = 0; kind < FR_IMPORT_KINDS; kind++)
        CHECK(strlen(fr_import_kind_name((fr_import_kind)kind)) > 2 && strlen(fr_import_kind_text((fr_import_kind)kind)) > 10);
}

/* ---- bytes of text ---- */

TEST(marks_nuls_and_invalid_bytes)
{
    CHECK_OK(import_one("bom", FR_SPLIT_LINES, fixture_text("bom.txt", "\xEF\xBB\xBF" "first\nsecond\n")));
    check_note(FR_IMPORT_BOM, 1, "bom.txt:1");
    CHECK_STR(texts_of("bom", 3), "first|second");
    CHECK_OK(import_one("bom-json", FR_SPLIT_FILE, fixture_text("bom.jsonl", "\xEF\xBB\xBF{\"text\":\"a\"}\n{\"text\":\"b\"}\n")));
    CHECK_INT(summary.documents, 2);
    static const char bytes[] = "nul\0here\nbad \xFF\xC0 bytes\nfine\n";
    CHECK_OK(import_one("bytes", FR_SPLIT_LINES, fixture_write("bytes.txt", bytes, sizeof bytes - 1)));
    check_note(FR_IMPORT_NUL, 1, "bytes.txt:1");
    check_note(FR_IMPORT_INVALID_UTF8, 1, "bytes.txt:2");
    CHECK_STR(texts_of("bytes", 3), "bad \xFF\xC0 bytes|fine|nul0here");
    const char *files[2] = {fixture_text("crlf.txt", "one\r\ntwo\r\n"), fixture_text("lf.txt", "three\nfour\n")};
    CHECK_OK(import("crlf", (fr_import_options){.split = FR_SPLIT_FILE}, files, 2));
    check_note(FR_IMPORT_CRLF, 1, "crlf.txt:1");
    CHECK_STR(texts_of("crlf", 3), "one\r\ntwo\r\n|three\nfour\n");
}

TEST(empty_files_are_named)
{
    const char *files[5] = {fixture_text("empty.txt", ""), fixture_text("blank.txt", " \n\t\n"), fixture_text("empty.jsonl", ""),
                            fixture_text("empty.gz-is-not.txt.gz", ""), fixture_text("full.txt", "a\nb\nc\n")};
    CHECK_OK(import("empty", (fr_import_options){.split = FR_SPLIT_LINES}, files, 5));
    check_note(FR_IMPORT_EMPTY, 4, "empty.txt:1");
    check_note(FR_IMPORT_EMPTY, 4, "blank.txt:1");
    check_note(FR_IMPORT_EMPTY, 4, "empty.jsonl:1");
    check_note(FR_IMPORT_EMPTY, 4, "empty.gz-is-not.txt.gz:1");
    CHECK_STR(texts_of("empty", 3), "a|b|c");
    CHECK_INT(import_one("all-empty", FR_SPLIT_FILE, files[0]), FR_BAD_DATA);
    CHECK_STR(error.what, "no text in 1 files");
}

/* ---- compressed files ---- */

static const char packed_text[] = "first line\nsecond line\nthird line\nfourth line\n";

TEST(members_and_frames_read_as_one_text)
{
    unsigned char packed[1024];
    size_t half = 22, size = fixture_gzip(packed_text, half, packed, 512);
    size += fixture_gzip(packed_text + half, strlen(packed_text) - half, packed + size, 512);
    memset(packed + size, 0, 16); /* padding as tapes leave it */
    CHECK_OK(import_one("members", FR_SPLIT_LINES, fixture_write("members.txt.gz", packed, size + 16)));
    CHECK_STR(texts_of("members", 3), "first line|fourth line|second line|third line");
    size = fixture_zstd(packed_text, half, packed, 512);
    size += fixture_zstd(packed_text + half, strlen(packed_text) - half, packed + size, 512);
    CHECK_OK(import_one("frames", FR_SPLIT_LINES, fixture_write("frames.TXT.ZST", packed, size)));
    CHECK_STR(texts_of("frames", 3), "first line|fourth line|second line|third line");
}

/* Incompressible lines, so that a cut in the middle leaves some of them whole. */
static size_t noisy_lines(char *out, int lines)
{
    size_t used = 0;
    for (int i = 0; i < lines; i++)
        used += (size_t)sprintf(out + used, "%016llx %016llx\n", (unsigned long long)fr_rng_at(1, 1, (uint64_t)i),
                                (unsigned long long)fr_rng_at(1, 2, (uint64_t)i));
    return used;
}

TEST(files_cut_short_keep_their_whole_documents)
{
    enum { LINES = 20000 };
    char *text = malloc(LINES * 40);
    size_t bytes = noisy_lines(text, LINES), capacity = bytes + 4096;
    unsigned char *packed = malloc(capacity);
    for (int kind = 0; kind < 2; kind++) {
        size_t size = kind ? fixture_zstd(text, bytes, packed, capacity) : fixture_gzip(text, bytes, packed, capacity);
        const char *path = fixture_write(kind ? "cut.txt.zst" : "cut.txt.gz", packed, size * 3 / 4);
        CHECK_OK(import_one(kind ? "cut-zst" : "cut-gz", FR_SPLIT_LINES, path));
        check_note(FR_IMPORT_TRUNCATED, 1, kind ? "cut.txt.zst:" : "cut.txt.gz:");
        CHECK(summary.documents > LINES / 4 && summary.documents < LINES);
        CHECK_INT(summary.dropped, 1);
        CHECK_INT(summary.bytes, summary.documents * 33);
        /* As one document it is cut, so it is no document. */
        CHECK_INT(import_one(kind ? "cut-zst-1" : "cut-gz-1", FR_SPLIT_FILE, path), FR_BAD_DATA);
        CHECK_INT(summary.counts[FR_IMPORT_TRUNCATED], 1);
        CHECK_INT(summary.documents, 0);
    }
    const char *files[2] = {fixture_write("stub.txt.gz", packed, 0), fixture_text("whole.txt", "a\nb\n")};
    unsigned char gzip[200];
    fixture_gzip("hello", 5, gzip, sizeof gzip);
    for (size_t n = 1; n < 24; n += 3) { /* cut in the header, the data, the trailer */
        files[0] = fixture_write("stub.txt.gz", gzip, n);
        char name[32];
        snprintf(name, sizeof name, "stub-%zu", n);
        CHECK_OK(import(name, (fr_import_options){.split = FR_SPLIT_LINES}, files, 2));
        check_note(FR_IMPORT_TRUNCATED, 1, "stub.txt.gz:1");
        CHECK_STR(texts_of(name, 3), "a|b");
    }
    free(packed);
    free(text);
}

TEST(damaged_files_are_errors)
{
    unsigned char packed[1024];
    size_t size = fixture_gzip(packed_text, strlen(packed_text), packed, sizeof packed);
    packed[size - 6] ^= 1; /* checksum */
    CHECK_INT(import_one("crc", FR_SPLIT_LINES, fixture_write("crc.txt.gz", packed, size)), FR_BAD_DATA);
    CHECK_STR(error.what, "damaged gzip data: incorrect data check");
    CHECK(strstr(error.where, "crc.txt.gz") && error.hint[0]);
    CHECK_INT(import_one("not-gz", FR_SPLIT_LINES, fixture_text("plain.txt.gz", "this is not gzip")), FR_BAD_DATA);
    CHECK_STR(error.what, "damaged gzip data: incorrect header check");
    size = fixture_gzip("hello", 5, packed, sizeof packed);
    memcpy(packed + size, "junk", 4);
    CHECK_INT(import_one("junk", FR_SPLIT_LINES, fixture_write("junk.txt.gz", packed, size + 4)), FR_BAD_DATA);
    CHECK_INT(import_one("not-zst", FR_SPLIT_LINES, fixture_text("plain.txt.zst", "this is not zstd")), FR_BAD_DATA);
    CHECK(strstr(error.what, "damaged zstd data") != NULL);
    size = fixture_zstd(packed_text, strlen(packed_text), packed, sizeof packed);
    packed[4] = 0x00; /* not a single segment; window byte follows */
    packed[5] = 0xFF; /* the largest window there is */
    CHECK_INT(import_one("wide", FR_SPLIT_LINES, fixture_write("wide.txt.zst", packed, size)), FR_BAD_DATA);
    CHECK_STR(error.what, "zstd data needs a window of more than 128 MiB");
}

/* ---- copies and splits ---- */

TEST(validation_files_win_over_training_copies)
{
    const char *train[1] = {fixture_text("train.jsonl", "{\"text\":\"alpha\"}\n{\"text\":\"Beta \"}\n{\"text\":\"gamma\"}\n{\"text\":\"ALPHA\"}\n")};
    const char *valid[1] = {fixture_text("valid.jsonl", "{\"text\":\"beta\"}\n{\"text\":\"delta\"}\n{\"text\":\"Delta\"}\n")};
    CHECK_OK(import("with-valid", (fr_import_options){.valid_paths = valid, .valid_path_count = 1}, train, 1));
    check_note(FR_IMPORT_IN_BOTH, 1, "train.jsonl:2");
    check_note(FR_IMPORT_DUPLICATE_TRAIN, 1, "train.jsonl:4");
    check_note(FR_IMPORT_DUPLICATE_VALID, 1, "valid.jsonl:3");
    CHECK_STR(texts_of("with-valid", 1), "alpha|gamma");
    CHECK_STR(texts_of("with-valid", 2), "beta|delta");
    CHECK_INT(import("all-in-both", (fr_import_options){.valid_paths = valid, .valid_path_count = 1}, valid, 1), FR_BAD_DATA);
    CHECK_STR(error.what, "no documents are left for the train split");
}

TEST(the_split_belongs_to_the_document)
{
    enum { LINES = 4000 };
    char *text = malloc(LINES * 40);
    size_t bytes = noisy_lines(text, LINES);
    const char *path = fixture_write("share.txt", text, bytes);
    CHECK_OK(import("share", (fr_import_options){.split = FR_SPLIT_LINES, .valid_fraction = 0.1}, &path, 1));
    CHECK_NEAR(summary.valid_documents, 0.1 * LINES, 80, 0);
    CHECK_INT(summary.train_documents + summary.valid_documents, LINES);
    CHECK_INT(summary.train_tokens + summary.valid_tokens, summary.tokens);
    /* Half of the text: the documents that stay are on the same side. */
    fr_corpus *whole = NULL, *half = NULL;
    CHECK_OK(fr_corpus_open(&whole, fixture_path("share"), false, &error));
    path = fixture_write("half.txt", text, bytes / 2);
    char tokenizer[800];
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", fixture_path("share"));
    fr_import_options options = {.split = FR_SPLIT_LINES, .valid_fraction = 0.1, .tokenizer_path = tokenizer};
    CHECK_OK(import("half", options, &path, 1));
    CHECK_OK(fr_corpus_open(&half, fixture_path("half"), false, &error));
    int32_t a[64], b[64];
    for (int64_t i = 0; i < fr_corpus_documents(half, FR_VALID); i++) {
        int64_t n = fr_corpus_document(half, FR_VALID, i, a, 64);
        CHECK(fr_corpus_document(whole, FR_VALID, i, b, 64) == n && memcmp(a, b, (size_t)n * sizeof *a) == 0);
    }
    fr_corpus_free(whole);
    fr_corpus_free(half);
    /* Two documents: one each, whatever the share says. */
    path = fixture_text("two.txt", "one\ntwo\n");
    for (int i = 0; i < 3; i++) {
        const double shares[] = {0, 1e-9, 0.999};
        CHECK_OK(import("two", (fr_import_options){.split = FR_SPLIT_LINES, .valid_fraction = shares[i], .overwrite = true}, &path, 1));
        CHECK(summary.train_documents == 1 && summary.valid_documents == 1);
    }
    free(text);
}

/* ---- files and folders ---- */

TEST(folders_are_read_in_order_and_strangers_reported)
{
    fixture_folder("tree");
    fixture_folder("tree/b");
    fixture_folder("tree/.hidden");
    fixture_text("tree/b/2.txt", "two");
    fixture_text("tree/a.txt", "one");
    fixture_text("tree/c.jsonl", "{\"text\":\"three\"}");
    fixture_text("tree/README.md", "no");
    fixture_text("tree/.hidden/x.txt", "no");
    CHECK(symlink(".", fixture_path("tree/loop")) == 0 && symlink("nowhere", fixture_path("tree/dangling.txt")) == 0);
    char path[800];
    snprintf(path, sizeof path, "%s//", fixture_path("tree"));
    const char *paths[1] = {path};
    CHECK_OK(import("tree-out", (fr_import_options){.split = FR_SPLIT_FILE, .licence = "CC0"}, paths, 1));
    CHECK_STR(texts_of("tree-out", 3), "one|three|two");
    check_note(FR_IMPORT_UNKNOWN_FILE, 4, "README.md:1");
    check_note(FR_IMPORT_UNKNOWN_FILE, 4, ".hidden:1");
    check_note(FR_IMPORT_UNKNOWN_FILE, 4, "loop:1");
    check_note(FR_IMPORT_UNKNOWN_FILE, 4, "dangling.txt:1");
    fr_arena arena;
    fr_arena_init(&arena, 1 << 12);
    char *json, *a, *b, *c;
    size_t bytes;
    CHECK_OK(fr_file_read(&arena, fixture_path("tree-out/corpus.json"), &json, &bytes, &error));
    a = strstr(json, "\"tree/a.txt\"");
    b = strstr(json, "\"tree/b/2.txt\"");
    c = strstr(json, "\"tree/c.jsonl\"");
    CHECK(a && b && c && a < b && b < c && strstr(json, "\"licence\": \"CC0\"") && !strstr(json, fixture_root));
    fr_arena_release(&arena);
}

TEST(misuse_is_refused)
{
    const char *good = fixture_text("good.txt", "a\nb\n"), *missing = fixture_path("missing.txt"), *odd = fixture_text("odd.pdf", "x");
    const char *folder = fixture_folder("nothing-here");
    fr_import_options lines = {.split = FR_SPLIT_LINES};
    CHECK_INT(import("misuse", lines, &good, 0), FR_BAD_USAGE);
    CHECK_INT(import("misuse", lines, &missing, 1), FR_BAD_DATA);
    CHECK_STR(error.what, "no such file or folder");
    CHECK_INT(import("misuse", lines, &odd, 1), FR_BAD_DATA);
    CHECK_STR(error.what, "cannot tell what kind of file this is");
    CHECK_INT(import("misuse", lines, &folder, 1), FR_BAD_DATA);
    CHECK_STR(error.what, "no text files there");
    CHECK_INT(import_one("misuse", FR_SPLIT_FILE, good), FR_BAD_DATA);
    CHECK_STR(error.what, "only one document: nothing can be held out for validation");
    CHECK(strstr(error.hint, "--split") != NULL);
    lines.valid_fraction = 1.5;
    CHECK_INT(import("misuse", lines, &good, 1), FR_BAD_USAGE);
    lines.valid_fraction = NAN;
    CHECK_INT(import("misuse", lines, &good, 1), FR_BAD_USAGE);
    lines = (fr_import_options){.split = FR_SPLIT_BYTES};
    CHECK_INT(import("misuse", lines, &good, 1), FR_BAD_USAGE);
    lines = (fr_import_options){.split = FR_SPLIT_LINES, .licence = "\xFF"};
    CHECK_INT(import("misuse", lines, &good, 1), FR_BAD_USAGE);
    lines.licence = NULL;
    CHECK_OK(import("kept", lines, &good, 1));
    CHECK(fr_import(&(fr_import_options){.out_folder = fixture_path("kept"), .paths = &good, .path_count = 1}, &summary, &error) == FR_BAD_USAGE);
    lines.overwrite = true; /* a failing import leaves the folder that is to be replaced as it was */
    CHECK_INT(import("kept", lines, &missing, 1), FR_BAD_DATA);
    CHECK_STR(texts_of("kept", 3), "a|b");
}

/* ---- the same for any number of threads ---- */

TEST(threads_change_nothing)
{
    enum { LINES = 3000 };
    char *text = malloc(LINES * 40), hashes[2][65];
    const char *path = fixture_write("threads.txt", text, noisy_lines(text, LINES));
    for (int i = 0; i < 2; i++) {
        fr_pool *pool = NULL;
        if (i)
            CHECK_OK(fr_pool_create(&pool, 4, &error));
        const char *name = i ? "threads-4" : "threads-1";
        CHECK_OK(import(name, (fr_import_options){.split = FR_SPLIT_LINES, .pool = pool}, &path, 1));
        fr_corpus *corpus = NULL;
        CHECK_OK(fr_corpus_open(&corpus, fixture_path(name), true, &error));
        snprintf(hashes[i], sizeof hashes[i], "%s", corpus ? fr_corpus_hash(corpus) : "");
        fr_corpus_free(corpus);
        fr_pool_free(pool);
    }
    CHECK_STR(hashes[0], hashes[1]); /* the manifest holds every other hash */
    free(text);
}

/* ---- failures ---- */

static bool stop_soon(void *context)
{
    return --*(int *)context < 0;
}

TEST(a_stopped_import_says_so)
{
    const char *path = fixture_text("stop.txt", "a\nb\nc\n");
    for (int n = 0; n < 3; n++) {
        int left = n;
        fr_progress progress = {.stop = stop_soon, .context = &left};
        CHECK_INT(import("stopped", (fr_import_options){.split = FR_SPLIT_LINES, .progress = &progress}, &path, 1), FR_STOPPED);
    }
}

/* Rewrites its file between the passes. */
typedef struct meddler {
    const char *path, *text;
    int calls, when;
} meddler;

static void meddle(void *context, const char *phase, double done, double total, const char *note)
{
    meddler *self = context;
    (void)phase, (void)done, (void)total, (void)note;
    if (self->calls++ == self->when)
        fixture_text(strrchr(self->path, '/') + 1, self->text);
}

TEST(files_that_change_meanwhile_are_noticed)
{
    static const char *const after[] = {"one\ntwo\nfour\n", "one\ntwo\nthree\nfour\n", "one\n", ""};
    for (int i = 0; i < 4; i++) {
        const char *path = fixture_text("changing.txt", "one\ntwo\nthree\n");
        meddler self = {path, after[i], 0, 0};
        fr_progress progress = {.update = meddle, .context = &self};
        CHECK_INT(import("changing", (fr_import_options){.split = FR_SPLIT_LINES, .progress = &progress}, &path, 1), FR_BAD_DATA);
        CHECK_STR(error.what, "the files changed while they were being imported");
    }
}

TEST(failed_allocations_and_writes_leave_no_corpus)
{
    unsigned char packed[1024];
    size_t size = fixture_gzip(packed_text, strlen(packed_text), packed, sizeof packed);
    const char *files[2] = {fixture_write("fail.txt.gz", packed, size), fixture_text("fail.jsonl", "{\"text\":\"x\"}\n{\"text\":\"y\"}\n")};
    char tokenizer[800];
    CHECK_OK(import("fail-tokenizer", (fr_import_options){.split = FR_SPLIT_LINES}, files, 2));
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", fixture_path("fail-tokenizer"));
    fr_import_options options = {.split = FR_SPLIT_LINES, .tokenizer_path = tokenizer};
    bool done = false;
    for (int64_t n = 0; !done && n < 3000; n++) {
        fr_allocate_fail_after(n);
        fr_status status = import("fail-memory", options, files, 2);
        fr_allocate_fail_after(-1);
        done = status == FR_OK;
        CHECK(done || status == FR_BAD_ENVIRONMENT);
    }
    CHECK(done);
    done = false;
    for (int64_t n = 0; !done && n < 1000000; n += 1501) {
        fr_file_fail_after(n);
        fr_status status = import("fail-disk", options, files, 2);
        fr_file_fail_after(-1);
        done = status == FR_OK;
        CHECK(done || (status == FR_BAD_ENVIRONMENT && !fixture_exists(fixture_path("fail-disk"), "train-00000.tok")));
    }
    CHECK(done);
}

/* Killed at any moment: either no corpus.json or a whole corpus, and the next import is not disturbed by what is left. */
TEST(pipes_and_devices_are_refused)
{
    const char *paths[] = {fixture_path("pipe.txt"), fixture_path("pipe.jsonl.gz"), "/dev/zero"};
    CHECK(mkfifo(paths[0], 0600) == 0 && mkfifo(paths[1], 0600) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(import("from-pipe", (fr_import_options){0}, paths + i, 1), FR_BAD_DATA);
        CHECK_STR(error.what, "a pipe or device, not a file or folder");
    }
}

TEST(a_killed_import_leaves_no_half_corpus)
{
    enum { LINES = 30000 };
    char *text = malloc(LINES * 40);
    const char *path = fixture_write("killed.txt", text, noisy_lines(text, LINES)), *folder = fixture_path("killed");
    free(text);
    int unfinished = 0;
    for (int i = 0; i < 6; i++) {
        fr_import_options options = {.out_folder = folder, .paths = &path, .path_count = 1, .vocab = 300, .split = FR_SPLIT_LINES, .overwrite = true};
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            _exit(fr_import(&options, &summary, &error));
        usleep((useconds_t)(i * i * 8000));
        kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child);
        fr_corpus *corpus = NULL;
        if (fixture_exists(folder, "corpus.json"))
            CHECK_OK(fr_corpus_open(&corpus, folder, true, &error));
        unfinished += corpus == NULL;
        fr_corpus_free(corpus);
    }
    CHECK(unfinished > 0); /* the first was killed at once */
    CHECK_OK(import("killed", (fr_import_options){.split = FR_SPLIT_LINES, .overwrite = true}, &path, 1));
    CHECK_INT(summary.documents, LINES);
    fr_arena arena;
    fr_arena_init(&arena, 1 << 12);
    char **names;
    size_t count;
    CHECK_OK(fr_folder_list(&arena, folder, &names, &count, &error));
    for (size_t i = 0; i < count; i++)
        CHECK(strncmp(names[i], "train-", 6) != 0 || !strstr(names[i], ".tmp")); /* no shard of a killed import */
    fr_arena_release(&arena);
}

/* Real text, when there is some: every byte arrives. */
TEST(shared_text_arrives_whole)
{
    const char *shared = getenv("FRONTIER_SHARED");
    char path[1024];
    snprintf(path, sizeof path, "%s/data/tinyshakespeare/input.txt", shared ? shared : "../shared");
    if (!fr_path_exists(path))
        SKIP("shared_text_arrives_whole needs ../shared");
    const char *paths[1] = {path};
    CHECK_OK(import("shakespeare", (fr_import_options){.split = FR_SPLIT_BYTES, .split_bytes = 4096}, paths, 1));
    CHECK_INT(summary.bytes, 1115394);
    CHECK_INT(summary.dropped, 0);
    CHECK(summary.valid_bytes > 20000 && summary.valid_bytes < 110000);
}

TEST_MAIN(import)
