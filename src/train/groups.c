/* groups.c: the table from a parameter's group to its learning rate and constants (baseline.md 2.1, 10.3).
 *
 * A row says where in the recipe the group's numbers live and which scales apply. The width scale
 * (C/768)^-0.5 belongs to tables whose rows are read one at a time, embedding, head and value tables; the
 * batch scale sqrt(batch / reference) to everything except the few loose scalars (smear, backout, gains),
 * which the reference leaves alone. Matrices go to Muon, with max(1, rows/columns)^0.5, or to plain AdamW
 * when the recipe asks for that.
 */
#include "train/groups.h"

#include <math.h>
#include <string.h>

#define OPTIM(FIELD) offsetof(fr_recipe, optim.FIELD)
#define NUMBERS(PREFIX)                                                                                      \
    OPTIM(PREFIX##_lr), OPTIM(PREFIX##_beta1), OPTIM(PREFIX##_beta2), OPTIM(PREFIX##_decay)

typedef struct group_row {
    const char *name;
    size_t lr, beta1, beta2, decay; /* offsets of doubles in fr_recipe */
    bool width_scale, batch_scale, resid_factor;
} group_row;

static const group_row group_rows[] = {
    {"embedding", NUMBERS(embedding), true, true, false}, {"head", NUMBERS(head), true, true, false},
    {"value", NUMBERS(value), true, true, false},         {"scalar", NUMBERS(scalar), false, false, false},
    {"resid", NUMBERS(scalar), false, true, true},        {"x0", NUMBERS(scalar), false, true, false},
    {"matrix", NUMBERS(adamw), false, true, false},
};
enum { GROUPS = sizeof group_rows / sizeof group_rows[0] };

static double number_at(const fr_recipe *recipe, size_t offset)
{
    return *(const double *)((const char *)recipe + offset);
}

static fr_status unknown_group(const fr_parameter_info *parameter, fr_error *error)
{
    const char *names[GROUPS];
    for (int i = 0; i < GROUPS; i++)
        names[i] = group_rows[i].name;
    const char *nearest = fr_nearest(parameter->group, names, GROUPS);
    char hint[200];
    snprintf(hint, sizeof hint, "%s%s%sthe groups are embedding, head, value, scalar, resid, x0 and matrix",
             nearest ? "did you mean '" : "", nearest ? nearest : "", nearest ? "'? " : "");
    return fr_error_set(error, FR_BAD_USAGE, parameter->name, hint, "unknown parameter group '%s'",
                        parameter->group);
}

static double batch_scale(const fr_recipe *recipe)
{
    if (recipe->optim.reference_batch <= 0)
        return 1;
    return sqrt((double)recipe->optim.batch_tokens / (double)recipe->optim.reference_batch);
}

static double width_scale(const fr_recipe *recipe)
{
    return recipe->optim.width_scale ? 1 / sqrt((double)fr_recipe_width(recipe) / 768) : 1;
}

static fr_group_rule muon_rule(const fr_recipe *recipe, const fr_parameter_info *parameter)
{
    double tall = (double)parameter->rows / (double)parameter->columns;
    return (fr_group_rule){
        .muon = true,
        .lr = recipe->optim.matrix_lr * batch_scale(recipe) * sqrt(tall > 1 ? tall : 1),
        .beta2 = recipe->optim.matrix_beta2,
    };
}

fr_status fr_group_rule_for(const fr_recipe *recipe, const fr_parameter_info *parameter, fr_group_rule *rule,
                            fr_error *error)
{
    if (strcmp(parameter->group, "matrix") == 0 && strcmp(recipe->optim.kind, "muon") == 0) {
        *rule = muon_rule(recipe, parameter);
        return FR_OK;
    }
    for (int i = 0; i < GROUPS; i++) {
        const group_row *row = &group_rows[i];
        if (strcmp(parameter->group, row->name) != 0)
            continue;
        *rule = (fr_group_rule){
            .lr = number_at(recipe, row->lr),
            .beta1 = number_at(recipe, row->beta1),
            .beta2 = number_at(recipe, row->beta2),
            .decay = number_at(recipe, row->decay),
            .eps = recipe->optim.eps,
        };
        rule->lr *= row->width_scale ? width_scale(recipe) : 1;
        rule->lr *= row->batch_scale ? batch_scale(recipe) : 1;
        rule->lr *= row->resid_factor ? recipe->optim.resid_lr_factor : 1;
        return FR_OK;
    }
    return unknown_group(parameter, error);
}
