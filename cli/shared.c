/* cli/shared.c: what several commands do alike: open a run's files, round for people. */
#include <math.h>
#include <string.h>

#include "cli.h"

json_t *cli_round(double value, int digits)
{
    double scale = pow(10, digits);
    return isfinite(value) ? json_real(round(value * scale) / scale) : json_null();
}

fr_status cli_read_json(const char *folder, const char *name, json_t **out, fr_error *error)
{
    char path[1200], where[1300];
    json_error_t problem;
    fr_path_join(path, sizeof path, folder, name);
    if (!fr_path_exists(path))
        return fr_error_set(error, FR_BAD_DATA, path, "is the folder's name right?", "no such file");
    *out = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
    snprintf(where, sizeof where, "%s:%d", path, problem.line);
    return *out ? FR_OK : fr_error_set(error, FR_BAD_DATA, where, NULL, "not valid JSON: %s", problem.text);
}
