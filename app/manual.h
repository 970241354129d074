/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_MANUAL_H
#define APP_MANUAL_H

/*
 * dpdk-sibfwd's man page and bash completion, from the tables of options and commands.
 */
#include <stdio.h>

void manual_man(FILE *out);
void manual_completion(FILE *out);

#endif
