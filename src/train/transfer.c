/* transfer.c: carrying the reference's hyper-parameters to another size (baseline.md 2.5).
 *
 * The reference is a depth-12 model with a batch of 2^19 tokens. A model is trained on `ratio` tokens per
 * scaling parameter (matrices and head); its best batch grows as the 0.383rd power of that horizon, rounded
 * to a power of two; learning rates follow the square root of the batch; weight decay keeps the time
 * constant batch / (lr * decay * horizon) of the averaging that decay does over a run.
 */
#include "frontier/train.h"

#include <math.h>

static const double REFERENCE_PARAMS = 110100480; /* depth 12, width 768, 32,768 ids */
static const double REFERENCE_BATCH = 524288;
static const double REFERENCE_DECAY = 0.28;
static const double BATCH_EXPONENT = 0.383;

fr_status fr_transfer_at(int64_t scaling_params, double ratio, fr_transfer *out, fr_error *error)
{
    if (scaling_params < 1)
        return fr_error_set(error, FR_BAD_USAGE, "transfer", NULL, "a model has at least one parameter");
    if (!(ratio > 0 && ratio < 1e6))
        return fr_error_set(error, FR_BAD_USAGE, "transfer", "12 is usual",
                            "tokens per parameter must be between 0 and a million");
    double growth = (double)scaling_params / REFERENCE_PARAMS;
    double exponent = round(log2(REFERENCE_BATCH * pow(growth, BATCH_EXPONENT)));
    out->tokens = ratio * (double)scaling_params;
    out->batch_tokens = INT64_C(1) << (int)(exponent < 0 ? 0 : exponent);
    out->steps = (int64_t)(out->tokens / (double)out->batch_tokens);
    out->lr_scale = sqrt((double)out->batch_tokens / REFERENCE_BATCH);
    out->matrix_decay = REFERENCE_DECAY * out->lr_scale / growth;
    return FR_OK;
}

fr_status fr_recipe_transfer(fr_recipe *recipe, int64_t vocab, double ratio, fr_error *error)
{
    fr_model_size size;
    fr_transfer transfer;
    FR_TRY(fr_model_measure(recipe, vocab, &size, error));
    FR_TRY(fr_transfer_at(size.matmul_params, ratio, &transfer, error));
    recipe->optim.batch_tokens = transfer.batch_tokens;
    recipe->optim.reference_batch = (int64_t)REFERENCE_BATCH;
    recipe->optim.matrix_decay = transfer.matrix_decay;
    recipe->clock.max_steps = transfer.steps > 0 ? transfer.steps : 1;
    return fr_recipe_check(recipe, error);
}
