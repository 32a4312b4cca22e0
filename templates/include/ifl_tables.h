/* The types of the tables that describe the model of a generated step; ifl_main.h reads them. */
#pragma once
#include "ifl_region.h"

/* Runs the regions of a graph; called on every thread. */
typedef void (*ifl_graph)(ifl_ctx *c, const ifl_step *s, int tid);

/* A buffer that values with disjoint lifetimes share: floats per row, and the count of the step that sets the number of rows. */
enum { IFL_TOKENS, IFL_OUT_ROWS, IFL_SEQS };
typedef struct {
  int cols, rows;
} ifl_buffer;

/* A state (KV cache): its elements (layers), bytes per page of one element, and the arguments of ifl_kv.h for a row. */
typedef struct {
  int64_t elements, page;
  int kv_heads, dim, vdim, elem_bytes; /* elem_bytes 0: q8_b32t2, −1: q4_b32t2 */
} ifl_state;

/* A fixed-size state: its elements (layers), and the floats of one element in a cell: the state before the cell's rows, and each
 * row. Both are multiples of 16. */
typedef struct {
  int64_t elements, start, row;
} ifl_fixed;

/* Bytes of one element in a cell. */
static inline int64_t ifl_cell_bytes(const ifl_fixed *x) { return 4 * (x->start + IFL_CELL_ROWS * x->row); }

/* A per-token input that selects a row of a table in a graph, by its offset in ifl_step. */
typedef struct {
  int entry;
  size_t field;
  int64_t below;
} ifl_lookup;

/* A packing of activations, and the maximum width of its rows. */
typedef struct {
  ifl_act_kind kind;
  int k;
} ifl_act;

/* A mixture of experts: the arguments of ifl_experts_bytes. */
typedef struct {
  int experts, top_k, cols, hidden;
  ifl_act_kind act_in, act_hidden;
} ifl_mixture;
