/* Fuzz target: bytes as a run's clock log. What is accepted is a history: charges never fall, progress is 0 to 1.
 */
#include "base/clock_log.h"

#include "scratch_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fr_clock_history history;
    fr_error error = {0};
    if (fr_clock_history_load(&history, scratch_file(data, size), &error) != FR_OK) {
        if (!error.what[0])
            abort();
        return 0;
    }
    for (int64_t i = 0; i < history.count; i++) {
        const fr_clock_record *r = &history.records[i];
        if (!(r->progress >= 0 && r->progress <= 1) || !(r->charged >= 0) ||
            (i && r->charged < history.records[i - 1].charged) || (r->dropped && i + 1 < history.count))
            abort();
    }
    fr_clock_history_release(&history);
    return 0;
}
