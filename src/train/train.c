/* train.c: the loop, and how a run ends.
 *
 * A run ends because the clock says so (finished), because somebody asked (stopped, resumable) or because
 * something broke (failed). In the first two cases everything is saved once more, outside the charge; after
 * a failure nothing is saved over the last good checkpoint. run.json tells which it was.
 */
#include "train/session.h"

#include <string.h>

static fr_status finish_failed(fr_session *session, fr_error *error)
{
    session->final_status = "failed";
    fr_error ignored = {0}; /* the failure itself matters more than a record that cannot be written */
    fr_run_record_write(session, session->final_status, &ignored);
    if (error)
        *error = session->failure;
    return session->failure.status;
}

fr_status fr_session_finish(fr_session *session, fr_error *error)
{
    if (session->state == FR_SESSION_FAILED)
        return finish_failed(session, error);
    if (session->state == FR_SESSION_UPDATED) /* the weights have moved: the step counts */
        FR_TRY(fr_session_end_step(session, error));
    bool over = session->state == FR_SESSION_OVER, asked = session->state == FR_SESSION_STOPPED;
    if (!over && !asked && session->state != FR_SESSION_READY) /* left in the middle of a step */
        fr_clock_drop_step(session->clock, session->totals.step);
    session->state = over ? FR_SESSION_OVER : FR_SESSION_STOPPED;
    session->totals.charged = fr_clock_charged(session->clock);
    if (session->saved_step != session->totals.step || !over)
        FR_TRY(fr_session_save(session, error));
    session->final_status = over ? "finished" : "stopped";
    FR_TRY(fr_run_record_write(session, session->final_status, error));
    FR_TRY(fr_clock_log_status(session->clock, error));
    if (asked)
        return fr_error_set(error, FR_STOPPED, session->options.run_folder, "continue with --resume",
                            "stopped after %lld steps; everything is saved", (long long)session->totals.step);
    return FR_OK;
}

fr_status fr_session_run(fr_session *session, fr_error *error)
{
    fr_error ended = {0}; /* a dropped step is the normal end; finish tells what kind of end it was */
    while (fr_session_begin_step(session, &ended))
        if (fr_session_gradients(session, &ended) == FR_OK && fr_session_update(session, &ended) == FR_OK)
            fr_session_end_step(session, &ended);
    return fr_session_finish(session, error);
}

fr_status fr_train(const fr_train_options *options, fr_error *error)
{
    fr_session *session;
    FR_TRY(fr_session_create(&session, options, error));
    fr_status status = fr_session_run(session, error);
    fr_session_free(session);
    return status;
}
