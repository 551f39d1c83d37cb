/* An optimizer of one's own in a training run: sign descent with momentum (Signum) in place of Muon and
 * AdamW.
 *
 *     usage: own_optimizer [DATA RUN [STEPS]]      DATA: a folder made by `frontier data world` or `data import`
 *
 * Without arguments it makes a small world of its own beside the program and trains a few steps on it.
 *
 * The session still owns rows, gradients, clock, log and checkpoints; only the line that moves the weights is
 * ours. Every number of the loop is the library's, so the loss it prints compares with any other run's.
 */
#include "frontier/frontier.h"

#include <stdlib.h>
#include <unistd.h>

static void move(fr_session *session, float *momentum)
{
    float *weights = fr_session_parameters(session);
    const float *gradient = fr_session_gradient_vector(session);
    int64_t count = fr_graph_flat_elements(fr_session_graph(session));
    float lr = 0.002f * (float)fr_session_scalars(session)->lr_multiplier;
    for (int64_t i = 0; i < count; i++) {
        momentum[i] += 0.1f * (gradient[i] - momentum[i]);
        weights[i] -= lr * (float)((momentum[i] > 0) - (momentum[i] < 0));
    }
}

static fr_status train(const fr_train_options *options, fr_error *error)
{
    fr_session *session;
    FR_TRY(fr_session_create(&session, options, error));
    float *momentum = calloc((size_t)fr_graph_flat_elements(fr_session_graph(session)), sizeof *momentum);
    while (momentum && fr_session_begin_step(session, error)) {
        if (fr_session_gradients(session, error) != FR_OK)
            break;
        move(session, momentum);
        if (fr_session_updated(session, error) != FR_OK || fr_session_end_step(session, error) != FR_OK)
            break;
        printf("step %lld  loss %.4f\n", (long long)fr_session_step(session), fr_session_loss(session));
    }
    fr_status status = fr_session_finish(session, error);
    fr_session_free(session);
    free(momentum);
    return status;
}

static fr_status set_up(fr_train_options *options, fr_error *error)
{
    static const char *const small[] = {"model.depth=2", "model.width=64", "model.head_dim=32",
                                        "model.context=64", "optim.batch_tokens=2048"};
    FR_TRY(fr_recipe_defaults(&options->recipe, error));
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        FR_TRY(fr_recipe_set(&options->recipe, small[i], error));
    return FR_OK;
}

static fr_status make_world(const char *folder, fr_error *error)
{
    fr_world_options world = {
        .out_folder = folder, .seed = 1, .docs_seed = 1, .bytes = 200000, .vocab = 512, .overwrite = true};
    fr_world_summary summary;
    return fr_world_generate(&world, &summary, error);
}

int main(int argc, char **argv)
{
    char data[600], run[600];
    fr_error error = {0};
    fr_train_options options = {.seed = 1, .peak_flops = -1, .clock_text = "virtual:1"};
    if (argc == 2) {
        fprintf(stderr, "usage: own_optimizer [DATA RUN [STEPS]]\n");
        return FR_BAD_USAGE;
    }
    snprintf(data, sizeof data, "%.500s.world", argv[0]);
    snprintf(run, sizeof run, "%.500s.run-%ld", argv[0], (long)getpid());
    options.data_folder = argc > 2 ? argv[1] : data;
    options.run_folder = argc > 2 ? argv[2] : run;
    options.clock = (fr_clock_options){
        .kind = FR_CLOCK_VIRTUAL, .seconds_per_step = 1, .budget = argc > 3 ? atof(argv[3]) : 10};
    fr_status status = set_up(&options, &error);
    if (status == FR_OK && argc < 3)
        status = make_world(data, &error);
    if (status == FR_OK)
        status = train(&options, &error);
    if (status != FR_OK)
        fprintf(stderr, "%s: %s (%s)\n", error.where, error.what, error.hint);
    return (int)status;
}
