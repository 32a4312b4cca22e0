// The stand-in driver: the part of the CUDA driver API that the runtime uses, for kernels compiled for emulation. It is only
// for tests.
//
// Streams are lazy: nothing in one happens before something waits for it, so tests detect a host buffer that is reused too
// early and a result that is read too early. Memory is filled with ones (NaN) and, with EMU_GUARD=1, ends at a protected
// page. Kernel arguments are copied at the launch, as in the real driver. EMU_FAIL makes a call fail.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

struct dim3 {
  unsigned x, y, z;
};
typedef void (*Thunk)(dim3, dim3, size_t, void **);
typedef int (*ArgSize)(int);
typedef int Result;
enum {
  OK = 0,
  INVALID = 1,
  OOM = 2,
  INVALID_IMAGE = 200,
  NO_BINARY = 209,
  ECC = 214,
  UNSUPPORTED_PTX = 222,
  NOT_FOUND = 500,
  CAPTURE_UNSUPPORTED = 900,
  ILLEGAL_ADDRESS = 700,
  LAUNCH_FAILED = 719,
};
#define API extern "C" __attribute__((visibility("default")))

namespace {
struct Op {
  std::function<void()> run;
};
struct Graph {
  std::vector<Op> ops;
};
struct Stream {
  std::vector<Op> queue;
  Graph *capture = nullptr;
};
struct Event {
  std::chrono::steady_clock::time_point at;
  Stream *stream = nullptr;
};
struct Function {
  Thunk run;
  ArgSize size;
  int fixed;           // bytes of shared variables
  int dynamic;         // maximum of dynamic shared memory
  bool loaded = false; // lazy loading: the first launch, or cuFuncLoad, completes it
};
enum { PLAIN_SHARED = 48 << 10, MOST_SHARED = 232448 }; // bytes of a block without and with opt-in
struct Block {
  void *base;
  size_t bytes;
  bool mapped;
};
std::mutex mutex;
std::map<uint64_t, Block> blocks;
size_t used = 0;

size_t capacity() {
  const char *e = getenv("EMU_MEMORY_MB");
  return (e ? (size_t)atoll(e) : (size_t)1 << 20) << 20;
}

const int DEVICES = 8; // all equal

void drain(Stream *s) {
  auto ops = std::move(s->queue);
  s->queue.clear();
  for (auto &o : ops)
    o.run();
}

Result put(Stream *s, std::function<void()> f) {
  if (!s) {
    f();
    return OK;
  }
  (s->capture ? s->capture->ops : s->queue).push_back({std::move(f)});
  return OK;
}

// EMU_FAIL=CALL:CODE[:N]: the N-th call of that name (default 1) returns the code. After a code that means a broken context
// (ECC, illegal address, failed launch), all later calls return it too if they can.
Result failing(const char *call) {
  static std::mutex one;
  static int broken = OK, calls = 0;
  std::lock_guard lock(one);
  const char *e = getenv("EMU_FAIL"), *colon = e ? strchr(e, ':') : nullptr;
  if (broken || !colon || std::string(e, colon - e) != call)
    return broken;
  char *rest;
  const int code = (int)strtol(colon + 1, &rest, 10), n = *rest == ':' ? atoi(rest + 1) : 1;
  if (++calls != n)
    return OK;
  if (code == ECC || code == ILLEGAL_ADDRESS || code == LAUNCH_FAILED)
    broken = code;
  return code;
}
#define MAY_FAIL(call)                                                                                                           \
  if (const Result code = failing(call))                                                                                         \
  return code

// The size of a shared object, from its section headers, which are at the end.
size_t elf_size(const void *image) {
  auto h = (const Elf64_Ehdr *)image;
  if (memcmp(h->e_ident, ELFMAG, SELFMAG))
    return 0;
  return h->e_shoff + (size_t)h->e_shentsize * h->e_shnum;
}
} // namespace

API Result cuInit(unsigned) { return OK; }
API Result cuDriverGetVersion(int *v) { return *v = 13000, OK; }
API Result cuDeviceGetCount(int *n) { return *n = DEVICES, OK; }
API Result cuDeviceGet(int *d, int i) { return i < 0 || i >= DEVICES ? INVALID : (*d = i, OK); }
API Result cuDeviceGetName(char *s, int n, int) { return snprintf(s, n, "CUDA emulation (not a device)"), OK; }
API Result cuDeviceGetAttribute(int *v, int a, int) {
  switch (a) {
  case 1:
    *v = 1024;
    break; // threads of a block
  case 8:
    *v = PLAIN_SHARED;
    break; // shared memory of a block
  case 16:
    *v = 4;
    break; // SMs
  case 38:
    *v = 1 << 20;
    break; // bytes of L2
  case 75:
    *v = 9;
    break; // compute capability
  case 97:
    *v = MOST_SHARED;
    break; // shared memory of a block that asks for it
  default:
    *v = 0;
  }
  return OK;
}
API Result cuDeviceGetPCIBusId(char *s, int n, int i) { return snprintf(s, n, "0000:%02x:00.0", i), OK; }
API Result cuDeviceTotalMem_v2(size_t *n, int) { return *n = capacity(), OK; }
API Result cuMemGetInfo_v2(size_t *free_, size_t *total) { return *total = capacity(), *free_ = *total - used, OK; }
API Result cuDevicePrimaryCtxRetain(void **c, int) {
  static int x;
  return *c = &x, OK;
}
API Result cuDevicePrimaryCtxRelease_v2(int) { return OK; }
API Result cuCtxSetCurrent(void *) { return OK; }

API Result cuMemAlloc_v2(uint64_t *p, size_t n) {
  MAY_FAIL("cuMemAlloc");
  std::lock_guard lock(mutex);
  if (!n)
    return INVALID;
  const size_t page = 4096, body = (n + page - 1) / page * page;
  if (used + body + page > capacity())
    return OOM;
  const char *guard = getenv("EMU_GUARD");
  char *base = (char *)mmap(nullptr, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return OOM;
  mprotect(base + body, page, PROT_NONE);
  const size_t align = guard && *guard == '1' ? 16 : 256;
  *p = (uint64_t)(base + body - (n + align - 1) / align * align);
  memset((void *)*p, 0xFF, n);
  blocks[*p] = {base, body + page, true};
  used += body + page;
  return OK;
}
API Result cuMemFree_v2(uint64_t p) {
  std::lock_guard lock(mutex);
  auto b = blocks.find(p);
  if (b == blocks.end())
    return INVALID;
  munmap(b->second.base, b->second.bytes);
  used -= b->second.bytes;
  blocks.erase(b);
  return OK;
}
API Result cuMemHostRegister_v2(void *, size_t, unsigned) { return OK; }
API Result cuMemHostUnregister(void *) { return OK; }
API Result cuMemHostGetDevicePointer_v2(uint64_t *d, void *h, unsigned) { return *d = (uint64_t)h, OK; }

API Result cuMemcpyHtoDAsync_v2(uint64_t d, const void *s, size_t n, Stream *st) {
  return put(st, [=] { memcpy((void *)d, s, n); });
}
API Result cuMemcpyDtoHAsync_v2(void *d, uint64_t s, size_t n, Stream *st) {
  return put(st, [=] { memcpy(d, (void *)s, n); });
}
API Result cuMemcpyDtoDAsync_v2(uint64_t d, uint64_t s, size_t n, Stream *st) {
  return put(st, [=] { memmove((void *)d, (void *)s, n); });
}
API Result cuMemsetD8Async(uint64_t d, unsigned char v, size_t n, Stream *st) {
  return put(st, [=] { memset((void *)d, v, n); });
}

API Result cuStreamCreate(Stream **s, unsigned) { return *s = new Stream, OK; }
API Result cuStreamSynchronize(Stream *s) {
  MAY_FAIL("cuStreamSynchronize");
  if (s && s->capture)
    return INVALID;
  if (s)
    drain(s);
  return OK;
}
API Result cuStreamDestroy_v2(Stream *s) { return delete s, OK; }

API Result cuEventCreate(Event **e, unsigned) { return *e = new Event, OK; }
API Result cuEventDestroy_v2(Event *e) { return delete e, OK; }
API Result cuEventRecord(Event *e, Stream *s) {
  e->stream = s;
  return put(s, [e] { e->at = std::chrono::steady_clock::now(); });
}
API Result cuEventSynchronize(Event *e) { return cuStreamSynchronize(e->stream); }
API Result cuEventElapsedTime(float *ms, Event *a, Event *b) {
  return *ms = std::chrono::duration<float, std::milli>(b->at - a->at).count(), OK;
}
API Result cuEventElapsedTime_v2(float *ms, Event *a, Event *b) { return cuEventElapsedTime(ms, a, b); }

// An image is loaded once: the stacks of its fibers stay mapped for the life of the process. Kernels have no variables.
API Result cuModuleLoadData(void **m, const void *image) {
  MAY_FAIL("cuModuleLoadData");
  static std::mutex one;
  static std::map<std::string, void *> loaded; // by the image's bytes
  const size_t n = elf_size(image);
  if (!n)
    return INVALID_IMAGE;
  std::lock_guard lock(one);
  void *&known = loaded[std::string((const char *)image, n)];
  if (known)
    return *m = known, OK;
  char path[] = "/tmp/ifl-emu-XXXXXX";
  const int fd = mkstemp(path);
  if (fd < 0)
    return INVALID_IMAGE;
  const bool whole = write(fd, image, n) == (ssize_t)n;
  close(fd);
  *m = known = whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!known)
    fprintf(stderr, "cuda_emu: %s\n", dlerror());
  unlink(path);
  return known ? OK : INVALID_IMAGE;
}
API Result cuModuleUnload(void *) { return OK; } // kernels may still be queued
API Result cuModuleGetFunction(void **f, void *m, const char *name) {
  auto run = (Thunk)dlsym(m, (std::string(name) + "__emu").c_str());
  auto size = (ArgSize)dlsym(m, (std::string(name) + "__arg").c_str());
  auto shared = (int (*)())dlsym(m, (std::string(name) + "__shared").c_str());
  if (!run || !size || !shared)
    return NOT_FOUND;
  const int fixed = shared();
  return *f = new Function{run, size, fixed, PLAIN_SHARED - fixed}, OK;
}
// Variables count besides the dynamic part, in the limits with and without opt-in.
API Result cuFuncGetAttribute(int *v, int attribute, Function *f) {
  if (attribute != 1 && attribute != 8)
    return INVALID;
  return *v = attribute == 1 ? f->fixed : f->dynamic, OK;
}
API Result cuFuncLoad(Function *f) { return f->loaded = true, OK; }
API Result cuFuncSetAttribute(Function *f, int attribute, int value) {
  if (attribute != 8 || value < 0 || f->fixed + value > MOST_SHARED)
    return INVALID;
  return f->dynamic = value, OK;
}
struct LaunchAttribute {
  unsigned id, pad, value[16];
};
struct LaunchConfig {
  dim3 grid, block;
  unsigned shared;
  Stream *stream;
  const LaunchAttribute *attributes;
  unsigned count;
};
API Result cuLaunchKernelEx(const LaunchConfig *l, Function *f, void **params, void **) {
  MAY_FAIL("cuLaunchKernelEx");
  const dim3 g = l->grid, b = l->block;
  if (!g.x || !g.y || !g.z || g.y > 65535 || g.z > 65535 || !(b.x * b.y * b.z) || b.x * b.y * b.z > 1024 ||
      (int)l->shared > f->dynamic)
    return INVALID;
  if (l->stream && l->stream->capture && !f->loaded)
    return CAPTURE_UNSUPPORTED;
  f->loaded = true;
  for (unsigned i = 0; i < l->count; i++)
    if (l->attributes[i].id != 6 || l->attributes[i].value[0] > 1) // programmatic stream serialization
      return INVALID;
  std::vector<std::vector<char>> args;
  for (int i = 0, n; (n = f->size(i)) >= 0; i++)
    args.emplace_back((char *)params[i], (char *)params[i] + n);
  return put(l->stream, [=, shared = l->shared]() mutable {
    std::vector<void *> at;
    for (auto &a : args)
      at.push_back(a.data());
    f->run(g, b, shared, at.data());
  });
}

API Result cuLaunchHostFunc(Stream *s, void (*f)(void *), void *data) {
  return put(s, [=] { f(data); });
}

API Result cuStreamBeginCapture_v2(Stream *s, int) {
  if (!s || s->capture)
    return INVALID;
  return s->capture = new Graph, OK;
}
API Result cuStreamIsCapturing(Stream *s, int *status) { return *status = s && s->capture, OK; }
API Result cuStreamEndCapture(Stream *s, Graph **g) {
  if (!s || !s->capture)
    return INVALID;
  *g = s->capture;
  s->capture = nullptr;
  return OK;
}
API Result cuGraphInstantiateWithFlags(Graph **e, Graph *g, uint64_t) { return *e = new Graph(*g), OK; }
API Result cuGraphLaunch(Graph *e, Stream *s) {
  MAY_FAIL("cuGraphLaunch");
  return put(s, [ops = e->ops] {
    for (auto o : ops)
      o.run();
  });
}
API Result cuGraphExecDestroy(Graph *e) { return delete e, OK; }
API Result cuGraphDestroy(Graph *g) { return delete g, OK; }

API Result cuGetErrorName(Result r, const char **s) {
  static const std::map<int, const char *> names = {
      {OK, "CUDA_SUCCESS"},
      {INVALID, "CUDA_ERROR_INVALID_VALUE"},
      {OOM, "CUDA_ERROR_OUT_OF_MEMORY"},
      {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
      {NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {ECC, "CUDA_ERROR_ECC_UNCORRECTABLE"},
      {UNSUPPORTED_PTX, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
      {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
  };
  const auto name = names.find(r);
  *s = name == names.end() ? "CUDA_ERROR_UNKNOWN" : name->second;
  return OK;
}
