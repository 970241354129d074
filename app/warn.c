/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "result.h"
#include "warn.h"

static char texts[32][256];
static unsigned int nb_texts;

void
warn(const char *fmt, ...)
{
	char text[sizeof(texts[0])];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (unsigned int i = 0; i < nb_texts; i++)
		if (strcmp(texts[i], text) == 0)
			return;
	fprintf(stderr, "dpdk-sibfwd: warning: %s\n", text);
	if (nb_texts < sizeof(texts) / sizeof(texts[0]))
		memcpy(texts[nb_texts++], text, sizeof(text));
}

json_t *
warn_json(void)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < nb_texts; i++)
		json_array_append_new(list, result_text_json(texts[i]));
	return list;
}
