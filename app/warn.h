/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_WARN_H
#define APP_WARN_H

/*
 * What could not be kept and is said aloud: to stderr at once, and kept for the results.
 */
#include <jansson.h>

/* One line to stderr; the same text is said and kept only once. */
void warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* All warnings so far as a JSON array; a new reference. */
json_t *warn_json(void);

#endif
