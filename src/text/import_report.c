/* import_report.c: the kinds of things an import reports, one table.
 *
 * Nothing is dropped or altered silently: every case has a kind with a name for scripts and a sentence for
 * people, a count, and up to 20 places. Kinds that drop text add to the summary's `dropped`.
 */
#include "text/import_report.h"

#include <string.h>

enum { NOTES_PER_KIND = 20 };

static const struct {
    const char *name, *text;
    bool drops;
} kinds[FR_IMPORT_KINDS] = {
    [FR_IMPORT_DUPLICATE_TRAIN] = {"duplicate-train", "the same document again in training text, dropped", true},
    [FR_IMPORT_DUPLICATE_VALID] = {"duplicate-valid", "the same document again in validation text, dropped", true},
    [FR_IMPORT_IN_BOTH] = {"in-both", "a validation document in training text, its training copy dropped", true},
    [FR_IMPORT_EMPTY] = {"empty", "a file or document without text, dropped", true},
    [FR_IMPORT_BAD_JSON] = {"bad-json", "a line that is not JSON, dropped", true},
    [FR_IMPORT_NO_TEXT] = {"no-text", "a JSON line without a string under the text key, dropped", true},
    [FR_IMPORT_NULL_TEXT] = {"null-text", "a JSON line or parquet row whose text is null, dropped", true},
    [FR_IMPORT_TRUNCATED] = {"truncated", "a compressed file cut short; the document at the cut is dropped, those before it kept", true},
    [FR_IMPORT_DUPLICATE_KEY] = {"duplicate-key", "a JSON line with the text key more than once, the last one taken", false},
    [FR_IMPORT_INVALID_UTF8] = {"invalid-utf8", "text that is not valid UTF-8, kept byte for byte (a lone JSON surrogate becomes U+FFFD)", false},
    [FR_IMPORT_BOM] = {"bom", "a file that begins with a UTF-8 byte-order mark; the mark is removed, the text kept", false},
    [FR_IMPORT_NUL] = {"nul", "a document with NUL bytes, kept", false},
    [FR_IMPORT_CRLF] = {"crlf", "a document with CR LF line ends, kept as they are", false},
    [FR_IMPORT_UNKNOWN_FILE] = {"unknown-file", "a file that is not .txt or .jsonl (or either with .gz or .zst) or .parquet, skipped", false},
};

const char *fr_import_kind_name(fr_import_kind kind)
{
    return (unsigned)kind < FR_IMPORT_KINDS ? kinds[kind].name : "unknown";
}

const char *fr_import_kind_text(fr_import_kind kind)
{
    return (unsigned)kind < FR_IMPORT_KINDS ? kinds[kind].text : "unknown";
}

bool import_kind_drops(fr_import_kind kind)
{
    return kinds[kind].drops;
}

void import_report(fr_import_summary *summary, fr_import_kind kind, const char *path, int64_t line)
{
    summary->dropped += kinds[kind].drops;
    if (++summary->counts[kind] > NOTES_PER_KIND)
        return;
    size_t length = strlen(path), most = sizeof summary->notes[0].where - 32;
    const char *tail = length > most ? path + length - most : path;
    summary->notes[summary->note_count].kind = kind;
    snprintf(summary->notes[summary->note_count].where, sizeof summary->notes[0].where, "%s%s:%lld",
             tail == path ? "" : "...", tail, (long long)line);
    summary->note_count++;
}
