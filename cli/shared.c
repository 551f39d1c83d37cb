/* cli/shared.c: what several commands do alike: open a run's files, round for people. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "cli.h"

json_t *cli_round(double value, int digits)
{
    double scale = pow(10, digits);
    return isfinite(value) ? json_real(round(value * scale) / scale) : json_null();
}

const char *cli_quoted(cli_run *run, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+:,=@%";
    if (*text && !text[strspn(text, plain)])
        return text;
    char *out = fr_arena_alloc(&run->arena, 4 * strlen(text) + 3), *to = out;
    if (!out)
        return text;
    *to++ = '\'';
    for (; *text; text++)
        to += *text == '\'' ? sprintf(to, "'\\''") : (*to = *text, 1);
    memcpy(to, "'", 2);
    return out;
}

fr_status cli_read_json(const char *folder, const char *name, json_t **out, fr_error *error)
{
    char path[1200];
    fr_path_join(path, sizeof path, folder, name);
    return fr_json_read(out, path, error);
}
