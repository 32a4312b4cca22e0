/* The interface between the generated step and the kernels of the CPU target.
 *
 * Weights are packed in panels of 16 rows ("panel16"). A panel is a run of tile-blocks, one per block of B columns:
 * [nz × 64 bytes of codes][16 × f16 scale][16 × f16 base]; q8_b32t2 has no base. Plain types: [K][16] elements.
 * A decoded code vector holds in 32-bit lane r the codes of row r for four consecutive k.
 *
 * Activations are packed in tiles of tm rows; the last tile may have fewer. Tile i holds rows i·tm … and begins
 * i·ifl_tile_bytes(…, tm) bytes into the buffer. A tile of mt rows is
 *   f32:  [K][mt] f32
 *   bf16: [K/2 rounded up][mt][2] bf16
 *   a8:   [Kp/4][mt][4] i8 codes, then at 64-byte-aligned offsets [Kp/B][mt] f32 scale, [Kp/B][mt] f32 scale·Σcode,
 *         [Kp/B][mt] i32 −128·Σcode, ifl_outliers of all rows;  Kp = K rounded up to whole blocks
 * A row is the sum of its blocks' codes and its outliers. The codes do not include the outliers, but scale·Σcode, the factor
 * of the weights' base, does.
 * Rows of one tile are interleaved, so one thread packs a whole tile or a range of its K-blocks. */
#pragma once
#include "ifl_step.h"
#include <stddef.h>

typedef enum { IFL_F32 = 0, IFL_A8_B32 = 1, IFL_A8_B64 = 2, IFL_BF16 = 3, IFL_A8_B16 = 4 } ifl_act_kind;

/* Reports whether the tokens of a sequence in a step form a speculation tree. */
static inline int ifl_tree(const ifl_step *s, int seq) { return s->mask && s->mask[(int64_t)s->first[seq] * s->mask_words] & 1; }

static inline int ifl_round16(int n) { return (n + 15) & ~15; }
static inline int64_t ifl_round64(int64_t n) { return (n + 63) & ~(int64_t)63; }
static inline int ifl_act_block(ifl_act_kind a) { return a == IFL_F32 || a == IFL_BF16 ? 1 : a == IFL_A8_B16 ? 16 : a == IFL_A8_B32 ? 32 : 64; }

/* A group of four columns of a row with its own scale: column i is scale·codes[i]. */
enum { IFL_OUTLIERS = 4 }; /* maximum per row */
typedef struct {
  uint16_t block, vector; /* columns from block·B + 4·vector */
  int8_t codes[4];
  int32_t corr; /* −128·Σcode */
  float scale;
} ifl_outlier;

/* The outliers of a tile's rows, the same number for each row. */
typedef struct {
  int64_t each;
  ifl_outlier at[]; /* [mt][each] */
} ifl_outliers;

/* Offsets of the parts of an a8 tile of mt rows. */
static inline int64_t ifl_a8_scale_at(int kp, int mt) { return ifl_round64((int64_t)kp * mt); }
static inline int64_t ifl_a8_sum_at(int kp, int mt, int b) { return ifl_a8_scale_at(kp, mt) + ifl_round64((int64_t)(kp / b) * mt * 4); }
static inline int64_t ifl_a8_corr_at(int kp, int mt, int b) { return ifl_a8_sum_at(kp, mt, b) + ifl_round64((int64_t)(kp / b) * mt * 4); }
static inline int64_t ifl_a8_outliers_at(int kp, int mt, int b) { return ifl_a8_corr_at(kp, mt, b) + ifl_round64((int64_t)(kp / b) * mt * 4); }
static inline int64_t ifl_tile_bytes(ifl_act_kind a, int k, int mt) {
  if (a == IFL_F32) return ifl_round64((int64_t)k * mt * 4);
  if (a == IFL_BF16) return ifl_round64((int64_t)((k + 1) / 2) * mt * 4);
  int b = ifl_act_block(a), kp = (k + b - 1) / b * b;
  return ifl_a8_outliers_at(kp, mt, b) + ifl_round64((int64_t)sizeof(ifl_outliers) + (int64_t)sizeof(ifl_outlier) * IFL_OUTLIERS * mt);
}

/* A matmul implementation: y[t·ldy + 16·p + r] for rows t in 0…rows-1 and `panels` consecutive panels from w.
 * act is packed in tiles of the implementation's own tm rows. scratch: ifl_mm_scratch bytes, per thread.
 * Every output is summed over k in the order that the template's header declares, independent of rows, tm and panels. */
typedef void (*ifl_mm)(const uint8_t *w, int k, int panels, const uint8_t *act, int rows, float *y, int64_t ldy, uint8_t *scratch);
/* An implementation, and the number of activation rows of its packed tiles. */
typedef struct {
  ifl_mm run;
  int tile;
} ifl_impl;
#define IFL_MM_SCRATCH_PER_K 128 /* maximum bytes of scratch of an implementation per column of K */

/* A pool of threads that run the same step. */
typedef struct ifl_pool ifl_pool;
void ifl_barrier(ifl_pool *pool);

/* Attention over the paged KV cache of one layer. Page p of the layer begins at state + p·page_bytes and holds 64 rows:
 * for each KV head the keys [64/16][dim16][16], then for each KV head the values [64][vdim16]; dim16 is dim rounded up
 * to 16 (padding is zero). Called by every thread of the pool. */
typedef struct ifl_attention {
  const ifl_step *step;
  ifl_pool *pool;
  int tid, threads;
  const float *q; int64_t ldq;   /* [T][heads·dim], after rope */
  float *out; int64_t ldo;       /* [T][heads·vdim] */
  const uint8_t *state; int64_t page_bytes;
  int heads, kv_heads, dim, vdim;
  float scale, softcap;          /* softcap 0: none */
  int window;                    /* 0: none; > 0: a row is visible if position > own − window or, if not causal, if
                                  * |position − own| ≤ window; < 0, with causal: if ⌊position / −window⌋ = ⌊own / −window⌋ */
  int causal;
  const float *alibi;            /* [heads] slopes, or NULL */
  const float *sinks;            /* [heads], or NULL */
  uint8_t *scratch; int64_t scratch_bytes; /* shared by the pool: ifl_attention_scratch(…) bytes */
  /* Relative bias, NULL if none: rel[rel_bucket[clamp(position − own, ±rel_max) + rel_max]·ldrel + head] is added to the
   * scaled score (T5: Raffel et al. 2020, §2.1). */
  const float *rel; int64_t ldrel;
  const int16_t *rel_bucket; int rel_max; /* [2·rel_max + 1] */
  int global; /* with a window: the first positions, which are visible to all */
  /* Disentangled attention (DeBERTa: He et al. 2021), NULL if none: of the bucket b of the distance, the products
   * q·rel_keys[head·dim…][b] and k·rel_queries[b][head·dim…] are added to q·k. heads = kv_heads. */
  const float *rel_keys; int64_t ldkeys;       /* [heads·dim][buckets] */
  const float *rel_queries; int64_t ldqueries; /* [buckets][heads·dim] */
  /* With selected: of the rows that a token sees otherwise, only those at the positions in its row of selected[T][lds], whose
   * `top` numbers ascend; the unused ones are +∞. */
  const float *selected; int64_t lds; int top;
  int every; /* with a number above 1: of the rows that a token sees otherwise, only those at positions p where it divides p + 1 */
  int lse;   /* out[T][heads·vdim + heads]: further columns with the logarithm of each head's sum of exp(score) */
  double *calib; /* [IFL_SCORES] calibration's histogram of this thread's rows by ⌊largest score · log₂e⌋, or NULL */
} ifl_attention;

#define IFL_SCORES 256 /* the first bin includes scores below −128, the last those above 127 */
