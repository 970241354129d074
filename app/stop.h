/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_STOP_H
#define APP_STOP_H

/*
 * SIGINT and SIGTERM: the first asks for an orderly end, the second kills.
 */
#include <stdbool.h>

/* Install the handlers, and ignore SIGPIPE: a closed reader is found when writing. */
void stop_install(void);

/* True once the first signal came. */
bool stop_asked(void);

/* Forget a first SIGINT, and take the next one for the first again. */
void stop_forgive(void);

/* What the second signal does before it kills, with what is safe in a handler; NULL: nothing. */
void stop_before_kill(void (*call)(void));

/* Sleep for that many seconds, less when a signal comes. */
void stop_sleep(double seconds);

#endif
