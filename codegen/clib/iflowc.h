/* The C interface of a model that iflowc compiled into a shared library.
 *
 * Texts are UTF-8 and end with a zero byte. Options are JSON objects or NULL for the defaults. A function that can fail
 * takes a pointer to where it puts a message, which the caller frees with iflowc_free; NULL: no message is wanted.
 * Every function may be called from any thread; texts that are asked for at the same time share the model's steps. */
#ifndef IFLOWC_H
#define IFLOWC_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define IFLOWC_VERSION 1 /* of this interface: iflowc_version returns the library's */

typedef uintptr_t iflowc_model; /* 0: none */

/* Gets a piece of text, whole characters, as soon as it is certain. Anything but 0 ends the generation. */
typedef int (*iflowc_piece)(void *user, const char *text);

#ifndef IFLOWC_TYPES_ONLY /* the library's own sources declare the functions themselves */
int32_t iflowc_version(void);

/* Opens a model; 0 with a message. weights is the file of packed weights, as iflowc compile writes it beside the
 * library. Options: {"threads": 0, "parallel": 4, "context": 0, "profile": "", "isa": ""}, where 0 chooses. */
iflowc_model iflowc_open(const char *weights, const char *options, char **error);
void iflowc_close(iflowc_model model);

/* What the model is: {"name": …, "network": …, "parameters": …, "vocabulary": …, "context": …}. The caller frees it. */
char *iflowc_info(iflowc_model model);

/* Continues a prompt. Options: {"max_tokens": 48, "temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05,
 * "repetition_penalty": 1, "seed": 1, "stop": ["…"], "schema": {…}}. Temperature 0 is greedy. What is left out is the model's own, else
 * iflowc_generate is greedy and iflowc_chat samples. Returns 0, or −1 with a message. */
int32_t iflowc_generate(iflowc_model model, const char *prompt, const char *options, iflowc_piece piece, void *user, char **error);

/* Answers a conversation, by the model's chat template: messages is [{"role": "user", "content": "…"}, …]. */
int32_t iflowc_chat(iflowc_model model, const char *messages, const char *options, iflowc_piece piece, void *user, char **error);

/* Writes a text's vector, of length 1, to out, of which size floats are there. Returns the vector's size, also when it is
 * over size and nothing was written; −1 with a message. */
int32_t iflowc_embed(iflowc_model model, const char *text, float *out, int32_t size, char **error);

void iflowc_free(char *text);
#endif

#ifdef __cplusplus
}
#endif
#endif
