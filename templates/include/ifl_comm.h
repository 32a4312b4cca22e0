/* What a step on one rank of a partitioned model says to the other ranks, and hears from them. A transport fills the
 * table, and ifl_config hands it to the model; a whole model has none. Thread 0 of the rank's pool makes the calls, while the
 * others wait at the pool's barrier. Each call returns 0, or anything else when the others cannot be reached any more:
 * then the step ends with -4, and every thread leaves it in order. */
#pragma once
#include <stdint.h>

typedef struct ifl_comm {
  void *self;
  /* Tensor group: every rank calls with equal sizes, in the same order. On return parts[m] is rank m's bytes (own
   * ones included), readable until the call after the next. mine is copied: it may be written as soon as the call returns. */
  int32_t (*exchange)(void *self, const void *mine, int64_t bytes, const void **parts);
  int32_t (*send)(void *self, int32_t to_rank, const void *data, int64_t bytes);
  int32_t (*recv)(void *self, int32_t from_rank, void *data, int64_t bytes);
} ifl_comm;
