/* The types of the tables with which a generated step says what its model is; ifl_main.h reads them. */
#pragma once
#include "ifl_region.h"

/* Runs the regions of a graph, on every thread. */
typedef void (*ifl_graph)(ifl_ctx *c, const ifl_step *s, int tid);

/* A buffer that values share in turn: floats a row, and which count of the step gives the rows. */
enum { IFL_TOKENS, IFL_OUT_ROWS, IFL_SEQS };
typedef struct {
  int cols, rows;
} ifl_buffer;

/* A state: its elements (layers), bytes of a page of one, and what ifl_kv.h has to know of a row. */
typedef struct {
  int64_t elements, page;
  int kv_heads, dim, vdim, elem_bytes; /* elem_bytes 0: q8_b32t2 */
} ifl_state;

/* An input of each token, by its offset in ifl_step, that selects a row of a table in a graph. */
typedef struct {
  int entry;
  size_t field;
  int64_t below;
} ifl_lookup;

/* Rows of activations that are packed: how, and how wide they are at most. */
typedef struct {
  ifl_act_kind kind;
  int k;
} ifl_act;

/* A mixture of experts, as ifl_experts_bytes counts its scratch. */
typedef struct {
  int experts, top_k, cols, hidden;
  ifl_act_kind act_in, act_hidden;
} ifl_mixture;
