/* The argmax of the logits, computed while they are in the cache of the worker that computed them. */
#pragma once
#include "ifl_step.h"
#include "ifl_vec.h"

/* Updates the argmax of some rows with columns n0 … n0+cols−1; rows of y are ldy apart, and cols is a multiple of 16. */
static inline void ifl_find_best(ifl_best *best, int rows, const float *y, int64_t ldy, int n0, int cols) {
  for (int t = 0; t < rows; t++, y += ldy) {
    ifl_v16 top = ifl_load(y), odd = {0}; /* odd: NaN in lanes with a non-finite number, else 0 */
    for (int j = 0; j < cols; j += 16) {
      const ifl_v16 v = ifl_load(y + j);
      top = ifl_max(top, v);
      odd = ifl_fma(v, ifl_set1(0), odd);
    }
    const float max = ifl_max_of(top);
    if (!(ifl_sum(odd) == 0)) {
      best[t].at = IFL_UNSURE;
    } else if (best[t].at != IFL_UNSURE && (best[t].at < 0 || max > best[t].value || (max == best[t].value && n0 < best[t].at))) {
      int j = 0;
      while (y[j] != max) j++;
      best[t] = (ifl_best){max, n0 + j};
    }
  }
}
