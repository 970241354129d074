/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_ROFF_H
#define IDLECTL_ROFF_H

/*
 * Text for man pages.
 */
#include <stdio.h>

/* A line of text: a hyphen typed by a user is \-, a dot at the start of a line is no request. */
void roff_text(FILE *out, const char *text);

#endif
