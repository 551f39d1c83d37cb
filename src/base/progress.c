/* progress.c: how long work tells its caller that it is alive.
 *
 * The library never prints. It calls back, and every callback may be absent, so the workers need no ifs.
 */
#include "frontier/base.h"

void fr_progress_update(const fr_progress *progress, const char *phase, double done, double total,
                        const char *note)
{
    if (progress && progress->update)
        progress->update(progress->context, phase, done, total, note ? note : "");
}

void fr_progress_message(const fr_progress *progress, const char *format, ...)
{
    if (!progress || !progress->message)
        return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    progress->message(progress->context, text);
}

bool fr_progress_stop(const fr_progress *progress)
{
    return progress && progress->stop && progress->stop(progress->context);
}
