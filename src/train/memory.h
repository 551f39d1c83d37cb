/* memory.h: how much memory this process may still take. */
#ifndef FRONTIER_TRAIN_MEMORY_H
#define FRONTIER_TRAIN_MEMORY_H
#include "frontier/base.h"

/* Bytes: what the system calls available, less where the control group allows less; 0 when nobody says. */
int64_t fr_memory_available(void);
/* Largest resident size of this process so far, bytes. */
int64_t fr_memory_peak(void);

#endif
