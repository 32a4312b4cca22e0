/* Functions of an endpoint that are the same for every transport: see ifl_endpoint.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ifl_endpoint.h"

void ifl_comm_counts(const ifl_comm *comm, ifl_counts *counts) {
  const ifl_endpoint *e = comm->self;
  counts->exchanges = atomic_load(&e->exchanges);
  counts->exchanged = atomic_load(&e->exchanged);
  counts->sends = atomic_load(&e->sends);
  counts->sent = atomic_load(&e->sent);
  counts->waited_ns = atomic_load(&e->waited_ns);
}

int32_t ifl_comm_failed(const ifl_comm *comm) { return atomic_load(&((const ifl_endpoint *)comm->self)->failed); }

void ifl_comm_patience(const ifl_comm *comm, int64_t timeout_ns) { atomic_store(&((ifl_endpoint *)comm->self)->timeout_ns, timeout_ns); }
