/* Communication of a step between the ranks of a partitioned model. A transport fills the table, and ifl_config passes it
 * to the model; NULL if the model is not partitioned. Thread 0 of the rank's pool makes the calls while the other threads
 * wait at the pool's barrier. Each call returns 0, or nonzero if another rank cannot be reached. Then the step returns -4
 * after every thread has left it at a barrier. */
#pragma once
#include <stdint.h>

typedef struct ifl_comm {
  void *self;
  /* All-gather in the TP group: every rank calls with equal sizes, in the same order. On return parts[m] points to rank
   * m's bytes, including its own, readable until the call after the next. mine is copied and may be reused on return. */
  int32_t (*exchange)(void *self, const void *mine, int64_t bytes, const void **parts);
  int32_t (*send)(void *self, int32_t to_rank, const void *data, int64_t bytes);
  int32_t (*recv)(void *self, int32_t from_rank, void *data, int64_t bytes);
} ifl_comm;
