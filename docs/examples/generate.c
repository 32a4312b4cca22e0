/* Continues a text with a model that iflowc compile --emit lib made:
 *
 *     iflowc compile demo --emit lib -o libdemo.so
 *     cc -o generate generate.c -I. ./libdemo.so
 *     ./generate libdemo.so.weights "Once upon a time"
 */
#include <stdio.h>
#include <stdlib.h>
#include "iflowc.h"

/* Prints each piece as it comes. */
static int show(void *user, const char *text) {
  (void)user;
  fputs(text, stdout);
  fflush(stdout);
  return 0;
}

static int fail(char *error) {
  fprintf(stderr, "%s\n", error);
  iflowc_free(error);
  return EXIT_FAILURE;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s WEIGHTS TEXT\n", argv[0]);
    return EXIT_FAILURE;
  }
  char *error = NULL;
  iflowc_model model = iflowc_open(argv[1], NULL, &error);
  if (!model) return fail(error);
  if (iflowc_generate(model, argv[2], "{\"max_tokens\": 48}", show, NULL, &error)) return fail(error);
  putchar('\n');
  iflowc_close(model);
  return EXIT_SUCCESS;
}
