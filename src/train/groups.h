/* groups.h: which update rule and constants a parameter group gets; see groups.c. */
#ifndef FRONTIER_TRAIN_GROUPS_H
#define FRONTIER_TRAIN_GROUPS_H
#include "frontier/train.h"

typedef struct fr_group_rule {
    bool muon;
    double lr; /* before the schedule; includes width, batch and shape factors */
    double beta1, beta2, eps;
    double decay; /* AdamW: decoupled decay; Muon takes its own from the step's scalars */
} fr_group_rule;

/* The rule for one parameter; a group nobody knows is FR_BAD_USAGE naming the nearest. */
fr_status fr_group_rule_for(const fr_recipe *recipe, const fr_parameter_info *parameter, fr_group_rule *rule, fr_error *error);

#endif
