/* A stand-in for NCCL between processes of one machine whose GPUs are emulated, so that their memory is the host's: the
 * calls that package comm makes, over named pipes. Work is enqueued on the stream of the emulation, which may capture it as a
 * graph. With NCCL_HANGS=RANK that rank stays in its twentieth call for good. For tests. */
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
  int ranks, rank, owner; /* owner: has the pipes */
  int *to, *from;         /* pipes */
} group;

typedef struct {
  int pipe, sends;
  char *at;
  size_t left;
} transfer;

typedef struct {
  int n;
  transfer list[];
} work;

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, UINT8 = 1, MOST = 64 };

static int calls, hangs;
static volatile int aborted, failed; /* by another thread; a transfer */

/* Makes all transfers, in whatever order they can be made. */
static int finish(int n, transfer *queue) {
  if (hangs && ++calls == 20) {
    fprintf(stderr, "the stand-in for NCCL hangs\n");
    for (;;) sleep(1);
  }
  for (int open = n; open > 0;) {
    struct pollfd waits[MOST];
    for (int i = 0; i < n; i++)
      waits[i] = (struct pollfd){queue[i].left ? queue[i].pipe : -1, queue[i].sends ? POLLOUT : POLLIN, 0};
    const int ready = poll(waits, (nfds_t)n, 50);
    if (aborted) return SYSTEM_ERROR;
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue; /* Go's scheduler signals its threads */
    if (ready < 0) return SYSTEM_ERROR;
    open = 0;
    for (int i = 0; i < n; i++) {
      transfer *t = &queue[i];
      if (waits[i].revents) {
        const ssize_t done = t->sends ? write(t->pipe, t->at, t->left) : read(t->pipe, t->at, t->left);
        if (done < 0 && errno != EAGAIN && errno != EINTR) return SYSTEM_ERROR;
        t->at += done > 0 ? done : 0;
        t->left -= done > 0 ? (size_t)done : 0;
      }
      open += t->left > 0;
    }
  }
  return SUCCESS;
}

/* Runs when the stream reaches the work, each time that a graph repeats it. */
static void run(void *data) {
  const work *w = data;
  transfer queue[MOST];
  memcpy(queue, w->list, (size_t)w->n * sizeof(transfer));
  if (aborted || finish(w->n, queue)) failed = 1;
}

static int enqueue(int n, const transfer *list, int type, void *stream) {
  int (*call)(void *, void (*)(void *), void *) = (int (*)(void *, void (*)(void *), void *))dlsym(RTLD_DEFAULT, "cuLaunchHostFunc");
  work *w = malloc(sizeof *w + (size_t)n * sizeof *list); /* kept: a graph may run it again */
  w->n = n;
  memcpy(w->list, list, (size_t)n * sizeof *list);
  return type != UINT8 || n > MOST || !call || call(stream, run, w) ? INVALID_ARGUMENT : SUCCESS;
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
  *g = (group){ranks, rank, 1, calloc((size_t)ranks, sizeof(int)), calloc((size_t)ranks, sizeof(int))};
  for (int r = 0; r < ranks; r++)
    if ((g->to[r] = open_pipe(id, rank, r)) < 0 || (g->from[r] = open_pipe(id, r, rank)) < 0) return SYSTEM_ERROR;
  *made = g;
  return SUCCESS;
}

/* The ranks of a color become a group in the order of their ranks here. The keys must be these. */
int ncclCommSplit(group *g, int color, int key, group **made, void *config) {
  (void)config;
  int colors[MOST], n = 0;
  transfer queue[2 * MOST];
  if (key != g->rank || g->ranks > MOST / 2) return INVALID_ARGUMENT;
  for (int r = 0; r < g->ranks; r++) {
    queue[n++] = (transfer){g->to[r], 1, (char *)&color, sizeof color};
    queue[n++] = (transfer){g->from[r], 0, (char *)&colors[r], sizeof color};
  }
  if (finish(n, queue)) return SYSTEM_ERROR;
  group *part = malloc(sizeof *part);
  *part = (group){0, 0, 0, calloc((size_t)g->ranks, sizeof(int)), calloc((size_t)g->ranks, sizeof(int))};
  for (int r = 0; r < g->ranks; r++)
    if (colors[r] == color) {
      if (r == g->rank) part->rank = part->ranks;
      part->to[part->ranks] = g->to[r], part->from[part->ranks++] = g->from[r];
    }
  *made = part;
  return SUCCESS;
}

int ncclSend(const void *from, size_t count, int type, int to, group *g, void *stream) {
  const transfer t = {g->to[to < g->ranks ? to : 0], 1, (void *)from, count};
  return to < 0 || to >= g->ranks ? INVALID_ARGUMENT : enqueue(1, &t, type, stream);
}

int ncclRecv(void *to, size_t count, int type, int from, group *g, void *stream) {
  const transfer t = {g->from[from < g->ranks ? from : 0], 0, to, count};
  return from < 0 || from >= g->ranks ? INVALID_ARGUMENT : enqueue(1, &t, type, stream);
}

int ncclAllGather(const void *from, void *to, size_t count, int type, group *g, void *stream) {
  transfer list[MOST];
  int n = 0;
  if (g->ranks > MOST / 2) return INVALID_ARGUMENT;
  for (int r = 0; r < g->ranks; r++) { /* also to itself */
    list[n++] = (transfer){g->to[r], 1, (void *)from, count};
    list[n++] = (transfer){g->from[r], 0, (char *)to + (size_t)r * count, count};
  }
  return enqueue(n, list, type, stream);
}

int ncclCommGetAsyncError(group *g, int *code) {
  (void)g;
  *code = failed ? SYSTEM_ERROR : SUCCESS;
  return SUCCESS;
}

int ncclCommDestroy(group *g) {
  if (g->owner) fprintf(stderr, "rank %d of %d leaves the stand-in for NCCL\n", g->rank, g->ranks);
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
