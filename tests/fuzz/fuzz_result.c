/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a windows.csv: read or refused in one line; what was read comes back the same when
 * written and read again, and table and JSON can be made of it.
 */
#include <stdlib.h>
#include <string.h>

#include "result.h"

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

/* What was read, written again; to be freed. */
static char *
rewrite(const struct result_set *set, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	demand(out != NULL && result_print_csv_header(out) == 0);
	for (size_t i = 0; i < set->nb_windows; i++)
		demand(result_print_csv(out, &set->windows[i]) == 0);
	fclose(out);
	return text;
}

static void
read_again(const struct result_set *set)
{
	struct result_set again = { 0 };
	struct err err;
	size_t len;
	char *text = rewrite(set, &len);

	demand(result_read_stream(&again, fmemopen(text, len, "r"), "again", &err) == 0);
	demand(again.nb_windows == set->nb_windows);
	for (size_t i = 0; i < set->nb_windows; i++)
		demand(memcmp(&again.windows[i], &set->windows[i], sizeof(again.windows[i])) == 0);
	result_free(&again);
	free(text);
}

static void
show(const struct result_set *set)
{
	json_t *windows = result_windows_json(set->windows, set->nb_windows);
	json_t *estimates = result_estimates_json(set->windows, set->nb_windows);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	demand(result_print_table(out, set->windows, set->nb_windows) == 0);
	demand(json_dumpf(windows, out, 0) == 0 && json_dumpf(estimates, out, 0) == 0);
	fclose(out);
	for (size_t i = 0; i < len; i++)
		demand((unsigned char)text[i] >= ' ' || text[i] == '\n');
	free(text);
	json_decref(windows);
	json_decref(estimates);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct result_set set = { 0 };
	struct err err = { 0 };

	if (size == 0)
		return 0;
	if (result_read_stream(&set, fmemopen((void *)(uintptr_t)data, size, "r"), "some.csv",
			    &err) == 0) {
		read_again(&set);
		show(&set);
	} else {
		demand(err.code == EXIT_FAILED && strchr(err.text, '\n') == NULL);
	}
	result_free(&set);
	return 0;
}
