// async.hpp - part of fibers.cpp: mbarriers, bulk copies and wgmma, as the PTX ISA describes them.
//
// Bulk copies and wgmma belong to the async proxy. It has its own copy of a block's shared memory, which a thread's writes
// reach with the proxy fence only. A bulk copy makes its target invalid at once. With EMU_CPASYNC=lazy it completes when no
// thread can run any more, the last legal moment, with eager at once. wgmma reads its operands when it is waited for (lazy)
// or at once (eager); its result is not a number until then.
#pragma once

namespace emu {
namespace {
struct Mbarrier {
  int32_t bytes;    // that the phase waits for
  uint16_t pending; // arrivals that the phase waits for
  uint8_t count;    // arrivals per phase
  uint8_t phase;    // 0xa0 + its parity; anything else is no barrier
};

// Checks that a pointer is to shared memory of the running block, and gives its offset.
EMU_NOTSAN size_t offset_of(const void *p, size_t bytes, const char *op) {
  Executor *b = executing();
  const size_t at = (const char *)p - b->smem;
  if (!b->smem || (const char *)p < b->smem || at + bytes > (size_t)(b->smem_map + b->smem_cap - b->smem))
    die("%s: %p is not in dynamic shared memory, lane %d", op, p, T->lane);
  return at;
}
EMU_NOTSAN Mbarrier *barrier_at(void *p, const char *op) {
  if (offset_of(p, 8, op) % 8)
    die("%s: the barrier is not aligned to 8 bytes", op);
  Mbarrier *m = (Mbarrier *)p;
  if ((m->phase & ~1) != 0xa0)
    die("%s: no mbarrier has been initialized here, warp %d lane %d", op, T->warp, T->lane);
  return m;
}
// Completes the phase if nothing is missing, and wakes up the threads that wait.
EMU_NOTSAN void advance(Mbarrier *m) {
  if (m->pending || m->bytes)
    return;
  m->phase ^= 1;
  m->pending = m->count;
  Executor *b = executing();
  for (int i = 0; i < b->n; i++)
    if (b->th[i].st == WAIT_MBARRIER && b->th[i].barrier == m) {
      b->th[i].st = READY;
      b->wp[i >> 5].ready |= 1u << (i & 31);
    }
}
EMU_NOTSAN void complete(const Bulk &c) {
  memcpy(c.to, c.from, c.bytes);
  memcpy(executing()->proxy.data() + offset_of(c.to, c.bytes, "cp.async.bulk"), c.from, c.bytes);
  Mbarrier *m = barrier_at(c.barrier, "complete_tx");
  m->bytes -= c.bytes;
  advance(m);
}
// Completes one bulk copy: the oldest, the newest, or a random one.
EMU_NOTSAN bool complete_one() {
  Executor *b = executing();
  if (b->bulk.empty())
    return false;
  size_t i = b->o.order == 0 ? 0 : b->bulk.size() - 1;
  if (b->o.order == 2)
    i = (b->rng >> 20) % b->bulk.size();
  const Bulk c = b->bulk[i];
  b->bulk.erase(b->bulk.begin() + i);
  complete(c);
  return true;
}

// The descriptor's matrix: rows of 128 bytes along K with the 128-byte swizzle.
EMU_NOTSAN float element(uint64_t desc, int row, int k) {
  const size_t start = (desc & 0x3fff) << 4, eight = (desc >> 32 & 0x3fff) << 4;
  if (desc >> 62 != 1 || (desc >> 49 & 7))
    die("wgmma: a descriptor %#llx without the 128-byte swizzle, or with a base offset", (unsigned long long)desc);
  size_t at = start + row / 8 * eight + row % 8 * 128 + 2 * k;
  at ^= (at >> 7 & 7) << 4;
  Executor *b = executing();
  if (at + 2 > b->proxy.size())
    die("wgmma: offset %zu of %zu bytes of shared memory", at, b->proxy.size());
  uint16_t h;
  memcpy(&h, b->proxy.data() + at, 2);
  return h2f(h);
}

constexpr float IN_FLIGHT = __builtin_nanf("0x1dead");
EMU_NOTSAN bool in_flight(const Fiber *t, const float *d) {
  for (const Wgmma &o : t->open)
    if (o.d == d)
      return true;
  for (const auto &g : t->batches)
    for (const Wgmma &o : g)
      if (o.d == d)
        return true;
  return false;
}
// The op before `o` with the same accumulators, or null.
EMU_NOTSAN Wgmma *before(Fiber *t, const Wgmma *o) {
  Wgmma *last = nullptr;
  for (auto &g : t->batches)
    for (Wgmma &x : g) {
      if (&x == o)
        return last;
      if (x.d == o->d)
        last = &x;
    }
  for (Wgmma &x : t->open) {
    if (&x == o)
      return last;
    if (x.d == o->d)
      last = &x;
  }
  return last;
}
// Computes one op of a warp; ops[l] is that of lane l.
EMU_NOTSAN void multiply(Fiber *warp, Wgmma *const *ops) {
  float A[16][16];
  for (int l = 0; l < 32; l++) {
    const int g = l >> 2, t = 2 * (l & 3);
    for (int r = 0; r < 4; r++)
      for (int i = 0; i < 2; i++)
        A[g + 8 * (r & 1)][t + i + 8 * (r >> 1)] = h2f(ops[l]->a[r] >> 16 * i);
  }
  const int n = ops[0]->n;
  std::vector<float> B(n * 16);
  for (int c = 0; c < n; c++)
    for (int k = 0; k < 16; k++)
      B[c * 16 + k] = element(ops[0]->b, c, k);
  for (int l = 0; l < 32; l++) {
    Wgmma *o = ops[l];
    if (o->b != ops[0]->b || o->n != n)
      die("wgmma: lanes of a warp have different descriptors");
    if (const Wgmma *p = before(warp + l, o))
      o->result = p->result;
    for (int i = 0; i < n / 2; i++) {
      const int row = (l >> 2) + 8 * (i >> 1 & 1), col = i / 4 * 8 + 2 * (l & 3) + (i & 1);
      for (int k = 0; k < 16; k++)
        o->result[i] += A[row][k] * B[col * 16 + k];
    }
    o->done = true;
  }
}
// Waits until at most `left` groups of a warp are pending.
EMU_NOTSAN void settle(Fiber *warp, size_t left) {
  while (warp->batches.size() > left) {
    for (size_t i = 0; i < warp->batches[0].size(); i++) {
      Wgmma *ops[32];
      for (int l = 0; l < 32; l++) {
        if (warp[l].batches.empty() || warp[l].batches[0].size() != warp->batches[0].size())
          die("wgmma: lanes of a warp have committed different groups");
        ops[l] = &warp[l].batches[0][i];
      }
      if (!ops[0]->done)
        multiply(warp, ops);
    }
    for (int l = 0; l < 32; l++) {
      std::vector<Wgmma> group = std::move(warp[l].batches[0]);
      for (size_t i = 0; i < group.size(); i++) // a later op of the group on the same accumulators continues this one
        for (size_t j = i + 1; j < group.size(); j++)
          if (group[j].d == group[i].d)
            group[i].n = 0;
      warp[l].batches.erase(warp[l].batches.begin());
      for (Wgmma &o : group) {
        if (!o.n)
          continue;
        for (auto &later : warp[l].batches)
          for (Wgmma &x : later)
            if (x.d == o.d && !x.done)
              x.result = o.result;
        if (in_flight(&warp[l], o.d))
          continue;
        for (int i = 0; i < o.n / 2; i++)
          if (memcmp(&o.d[i], &IN_FLIGHT, 4))
            die("wgmma: a register of the result was written before wgmma.wait_group, warp %d lane %d", warp->warp, l);
        memcpy(o.d, o.result.data(), o.n / 2 * 4);
        warp[l].fenced[o.d].assign((uint32_t *)o.d, (uint32_t *)o.d + o.n / 2);
      }
    }
  }
}
// Fails if registers changed since the last wgmma.fence.
EMU_NOTSAN void check_fenced(Fiber *t, const void *p, int words, const char *what) {
  auto it = t->fenced.find(p);
  if (it == t->fenced.end() || (int)it->second.size() != words)
    t->fenced[p].assign((const uint32_t *)p, (const uint32_t *)p + words);
  else if (memcmp(it->second.data(), p, 4 * words))
    die("wgmma: registers of %s changed after wgmma.fence, warp %d lane %d", what, t->warp, t->lane);
}
EMU_NOTSAN void newest(uint32_t, Slot *in, Slot *) {
  Fiber *warp = (Fiber *)in[0].p;
  Wgmma *ops[32];
  for (int l = 0; l < 32; l++)
    ops[l] = &warp[l].open.back();
  multiply(warp, ops);
}
} // namespace

EMU_NOTSAN void mbarrier_init(void *p, uint32_t count) {
  if (offset_of(p, 8, "mbarrier.init") % 8 || count < 1 || count > 255)
    die("mbarrier.init: alignment, or a count of %u", count);
  *(Mbarrier *)p = {0, (uint16_t)count, (uint8_t)count, 0xa0};
  executing()->unfenced = true;
}
EMU_NOTSAN void mbarrier_arrive(void *p, uint32_t bytes) {
  Mbarrier *m = barrier_at(p, "mbarrier.arrive");
  if (!m->pending)
    die("mbarrier.arrive: more arrivals than the barrier expects, warp %d lane %d", T->warp, T->lane);
  m->bytes += bytes;
  m->pending--;
  advance(m);
}
EMU_NOTSAN void mbarrier_wait(void *p, uint32_t parity) {
  Fiber *t = running();
  if (parity > 1)
    die("mbarrier.try_wait.parity: parity %u", parity);
  for (Mbarrier *m = barrier_at(p, "mbarrier.try_wait"); (uint32_t)(m->phase & 1) == parity;) {
    t->st = WAIT_MBARRIER;
    t->where = parity ? "mbarrier, parity 1" : "mbarrier, parity 0";
    t->barrier = m;
    executing()->wp[t->warp].ready &= ~(1u << t->lane);
    park(t);
  }
}
EMU_NOTSAN void bulk_copy(void *to, const void *from, uint32_t bytes, void *bar) {
  Executor *b = executing();
  if (((uintptr_t)from | offset_of(to, bytes, "cp.async.bulk") | bytes) & 15)
    die("cp.async.bulk: misaligned, or %u bytes", bytes);
  if (b->unfenced)
    die("cp.async.bulk: a barrier was initialized without a proxy fence");
  barrier_at(bar, "cp.async.bulk");
  if (!b->o.lazy)
    return complete({to, from, bytes, bar});
  memset(to, 0xff, bytes);
  memset(b->proxy.data() + offset_of(to, bytes, "cp.async.bulk"), 0xff, bytes);
  b->bulk.push_back({to, from, bytes, bar});
}
EMU_NOTSAN void proxy_fence() {
  Executor *b = executing();
  b->unfenced = false;
  memcpy(b->proxy.data(), b->smem, b->proxy.size());
}
EMU_NOTSAN uint32_t shared_address(const void *p) { return (uint32_t)offset_of(p, 1, "the address of a descriptor"); }

EMU_NOTSAN void wgmma_fence() {
  Fiber *t = running();
  t->fence = true;
  for (auto &[p, words] : t->fenced)
    if (!in_flight(t, (const float *)p))
      memcpy(words.data(), p, 4 * words.size());
}
EMU_NOTSAN void wgmma(float *d, const uint32_t *a, uint64_t desc, int n) {
  Fiber *t = running();
  if (!t->fence)
    die("wgmma: no wgmma.fence before the first");
  check_fenced(t, a, 4, "A");
  Wgmma o = {d, a, desc, n, false, std::vector<float>(d, d + n / 2)};
  if (!in_flight(t, d)) {
    check_fenced(t, d, n / 2, "the result");
    std::fill(d, d + n / 2, IN_FLIGHT);
  }
  t->open.push_back(std::move(o));
  t->wgmmas++;
  Slot s;
  s.p = t - t->lane;
  int p;
  warp_coll(~0u, "wgmma.mma_async", &s, p, false, executing()->o.lazy ? nolast : newest);
}
EMU_NOTSAN void wgmma_commit() {
  Fiber *t = running();
  t->batches.push_back(std::move(t->open));
  t->open.clear();
}
EMU_NOTSAN void wgmma_wait(size_t left) {
  Fiber *t = running();
  Slot s;
  s.q[0] = left;
  s.q[1] = (uint64_t)(t - t->lane);
  int p;
  warp_coll(~0u, "wgmma.wait_group", &s, p, false, [](uint32_t, Slot *in, Slot *) EMU_NOTSAN { settle((Fiber *)in[0].q[1], in[0].q[0]); });
}
namespace {
// What a thread or a block may not leave behind.
EMU_NOTSAN void finished(Fiber *t) {
  if (!t->open.empty() || !t->batches.empty())
    die("wgmma: warp %d lane %d ended without waiting for it", t->warp, t->lane);
}
EMU_NOTSAN void finished(Executor *b) {
  if (!b->bulk.empty())
    die("cp.async.bulk: the block ended before %zu copies", b->bulk.size());
  for (int i = 0; i < b->n; i += 32)
    if (b->th[i].wgmmas != b->th[i / 128 * 128].wgmmas)
      die("wgmma: warps of a warpgroup executed %zu and %zu", b->th[i / 128 * 128].wgmmas, b->th[i].wgmmas);
}
} // namespace
} // namespace emu
