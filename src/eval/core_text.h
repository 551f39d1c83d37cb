/* White space at the ends of a text, as Python's str.strip() sees it. */
#ifndef FRONTIER_EVAL_CORE_TEXT_H
#define FRONTIER_EVAL_CORE_TEXT_H
#include "frontier/core.h"

fr_core_text core_strip(fr_core_text text);

#endif
