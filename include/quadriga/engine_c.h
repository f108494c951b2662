/* SPDX-License-Identifier: BSD-3-Clause
 * include/quadriga/engine_c.h: engines, for C. */
#ifndef QUADRIGA_ENGINE_C_H
#define QUADRIGA_ENGINE_C_H

#include <quadriga/c_errors.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quadriga_engine quadriga_engine;

/* Starts an engine on devices such as "cpu", "cuda" or "emulated:2,memory=64MiB"; NULL or "": as
 * configured by QUADRIGA_DEVICES or a file, else all of the machine. *engine is NULL on failure.
 * Returns 0, -1 or -2 for an argument that is wrong, or a value of enum quadriga_failure. */
int64_t quadriga_open(const char* devices, quadriga_engine** engine);
/* Ends the engine and frees its resources. NULL is allowed. */
void quadriga_close(quadriga_engine* engine);

#ifdef __cplusplus
}
#endif

#endif
