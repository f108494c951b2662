/* SPDX-License-Identifier: BSD-3-Clause
 * include/quadriga/c_errors.h: how functions for C and Fortran say that they have failed. */
#ifndef QUADRIGA_C_ERRORS_H
#define QUADRIGA_C_ERRORS_H

#ifdef __cplusplus
extern "C" {
#endif

enum quadriga_failure {
  QUADRIGA_TOO_LARGE = -1001,   /* Fits neither on the devices nor on the host. */
  QUADRIGA_TASK_FAILED = -1002, /* A kernel failed. */
  QUADRIGA_DEVICE_LOST = -1003,
  QUADRIGA_UNAVAILABLE = -1004, /* Not on this machine, or not in this build. */
  QUADRIGA_OTHER = -1005,       /* See quadriga_message(). */
  /* Of messages: */
  QUADRIGA_INVALID = -1006,   /* An argument, or elements that don't agree. */
  QUADRIGA_PEER_LOST = -1007, /* Another process has ended, or has left. */
  QUADRIGA_DEADLINE = -1008,  /* A call took too long, and was withdrawn. */
  QUADRIGA_CANCELLED = -1009, /* Another rank gave up. */
  /* Of sparse solvers: */
  QUADRIGA_BREAKDOWN = -1010 /* A matrix isn't positive definite, or a number isn't finite. */
};

/* The message of this thread's last failed call; "" if none has failed. Valid until the next call
 * in this thread. */
const char* quadriga_message(void);

#ifdef __cplusplus
}
#endif

#endif
