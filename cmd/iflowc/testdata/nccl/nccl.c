/* A stand-in for NCCL between processes of one machine whose GPUs are emulated, so that their memory is the host's: the
 * calls that package comm makes, over named pipes. What NCCL would put on a stream is done at once, behind what the
 * emulation has put there. With NCCL_HANGS=RANK that rank stays in its twentieth exchange for good. For tests. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  char at[128]; /* the folder of the pipes */
} ncclUniqueId;

typedef struct {
  int ranks, rank;
  int *to, *from; /* pipes */
} group;

typedef struct {
  int pipe, sends;
  char *at;
  size_t left;
} transfer;

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, UINT8 = 1, MOST = 256 };

static transfer queue[MOST];
static int queued, depth, calls, hangs;
static volatile int aborted; /* by another thread */

/* Does all that is queued, in whatever order it can be done. */
static int finish(void) {
  if (hangs && ++calls == 20) {
    fprintf(stderr, "the stand-in for NCCL hangs\n");
    for (;;) sleep(1);
  }
  for (int open = queued; open > 0;) {
    struct pollfd waits[MOST];
    for (int i = 0; i < queued; i++)
      waits[i] = (struct pollfd){queue[i].left ? queue[i].pipe : -1, queue[i].sends ? POLLOUT : POLLIN, 0};
    const int ready = poll(waits, (nfds_t)queued, 50);
    if (aborted) return SYSTEM_ERROR;
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue; /* Go's scheduler signals its threads */
    if (ready < 0) return SYSTEM_ERROR;
    open = 0;
    for (int i = 0; i < queued; i++) {
      transfer *t = &queue[i];
      int before = 0; /* an earlier one has the pipe */
      for (int j = 0; j < i; j++) before |= queue[j].pipe == t->pipe && queue[j].sends == t->sends && queue[j].left;
      if (waits[i].revents && !before) {
        const ssize_t n = t->sends ? write(t->pipe, t->at, t->left) : read(t->pipe, t->at, t->left);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return SYSTEM_ERROR;
        t->at += n > 0 ? n : 0;
        t->left -= n > 0 ? (size_t)n : 0;
      }
      open += t->left > 0;
    }
  }
  queued = 0;
  return SUCCESS;
}

static int add(int pipe, int sends, void *at, size_t bytes, int type, void *stream) {
  int (*wait)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "cuStreamSynchronize");
  if (type != UINT8 || queued == MOST || !wait || wait(stream)) return INVALID_ARGUMENT;
  queue[queued++] = (transfer){pipe, sends, at, bytes};
  return depth ? SUCCESS : finish();
}

int ncclGetVersion(int *version) {
  *version = 22300;
  return SUCCESS;
}

int ncclGetUniqueId(ncclUniqueId *id) {
  const char *pipes = getenv("NCCL_PIPES");
  snprintf(id->at, sizeof id->at, "%s/nccl-XXXXXX", pipes ? pipes : "/tmp");
  return mkdtemp(id->at) ? SUCCESS : SYSTEM_ERROR;
}

static int open_pipe(const ncclUniqueId *id, int from, int to) {
  char path[192];
  snprintf(path, sizeof path, "%s/%d-%d", id->at, from, to);
  if (mkfifo(path, 0600) && errno != EEXIST) return -1;
  return open(path, O_RDWR | O_NONBLOCK);
}

int ncclCommInitRankScalable(group **made, int ranks, int rank, int ids, const ncclUniqueId *id, void *config) {
  (void)config;
  const char *who = getenv("NCCL_HANGS");
  hangs = who && atoi(who) == rank;
  if (ids != 1 || rank < 0 || rank >= ranks) return INVALID_ARGUMENT;
  group *g = malloc(sizeof *g);
  *g = (group){ranks, rank, calloc((size_t)ranks, sizeof(int)), calloc((size_t)ranks, sizeof(int))};
  for (int r = 0; r < ranks; r++)
    if ((g->to[r] = open_pipe(id, rank, r)) < 0 || (g->from[r] = open_pipe(id, r, rank)) < 0) return SYSTEM_ERROR;
  *made = g;
  return SUCCESS;
}

int ncclSend(const void *from, size_t count, int type, int to, group *g, void *stream) {
  return to < 0 || to >= g->ranks ? INVALID_ARGUMENT : add(g->to[to], 1, (void *)from, count, type, stream);
}

int ncclRecv(void *to, size_t count, int type, int from, group *g, void *stream) {
  return from < 0 || from >= g->ranks ? INVALID_ARGUMENT : add(g->from[from], 0, to, count, type, stream);
}

int ncclGroupStart(void) {
  depth++;
  return SUCCESS;
}

int ncclGroupEnd(void) { return --depth ? SUCCESS : finish(); }

int ncclCommGetAsyncError(group *g, int *code) {
  (void)g;
  *code = SUCCESS;
  return SUCCESS;
}

int ncclCommDestroy(group *g) {
  fprintf(stderr, "rank %d of %d leaves the stand-in for NCCL\n", g->rank, g->ranks);
  return SUCCESS; /* the pipes end with the process */
}

int ncclCommAbort(group *g) {
  (void)g;
  aborted = 1;
  return SUCCESS;
}

const char *ncclGetErrorString(int code) { return code == SYSTEM_ERROR ? "system error" : "invalid argument"; }

const char *ncclGetLastError(group *g) {
  (void)g;
  return strerror(errno);
}
