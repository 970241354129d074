/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_ENVIRONMENT_H
#define APP_ENVIRONMENT_H

/*
 * What the machine was like, for environment.json.
 */
#include <jansson.h>

#include "lcore.h"
#include "placement.h"
#include "port.h"

/*
 * The machine's state now; taken before and after the measurement. What cannot be read is null.
 * A new reference.
 */
json_t *environment_json(
		const struct placement *p, const struct ports *ports, const struct lcore *lcores);

/* A file of one line, or the value of a key of /proc/cpuinfo's first processor; null where there is none. */
json_t *environment_file(const char *path);
json_t *environment_cpuinfo(const char *key);

#endif
