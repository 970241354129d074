/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any words as a command line: either it is understood, or one line names what is wrong. The
 * input is split at newlines and NULs.
 */
#include <stdlib.h>
#include <string.h>

#include "options.h"

#define WORDS_MAX 64

/* The parser only looks modes up: stand-ins for the registry keep DPDK out of the target. */
static const struct fwd_mode modes[] = {
	{ .name = "io" },
	{ .name = "txonly" },
	{ .name = "noisy", .kind = FWD_EVERY_TURN },
};

const struct fwd_mode *
fwd_mode_find(const char *name)
{
	for (size_t i = 0; i < RTE_DIM(modes); i++)
		if (strcmp(modes[i].name, name) == 0)
			return &modes[i];
	return NULL;
}

const char *
fwd_mode_names(void)
{
	return "io txonly noisy";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

/* Split text, size bytes and a NUL, in place; words[0] is the program. Returns their number. */
static int
split(char *text, size_t size, char *words[WORDS_MAX + 2])
{
	static char program[] = "dpdk-sibfwd";
	char *word = text;
	int n = 0;

	words[n++] = program;
	for (size_t i = 0; i <= size && n <= WORDS_MAX; i++) {
		if (text[i] != '\n' && text[i] != '\0')
			continue;
		text[i] = '\0';
		if (word != text + size)
			words[n++] = word;
		word = text + i + 1;
	}
	words[n] = NULL;
	return n;
}

/* What the rest of the program takes for granted. */
static void
check_understood(const struct options *o)
{
	CHECK(o->mode != NULL && o->nb_scenarios >= 1 &&
			o->nb_scenarios <= SCHEDULE_SCENARIOS_MAX &&
			o->scenarios[0].text[0] != '\0' && o->scenarios[0].nb <= WORD_KINDS);
	CHECK(o->source_text != NULL);
	CHECK(o->burst >= 1 && o->burst <= LCORE_BURST_MAX);
	CHECK(o->nb_ports <= OPTIONS_PORTS_MAX);
	for (uint16_t i = 0; i < o->nb_ports; i++)
		CHECK(o->ports[i] < OPTIONS_PORTS_MAX);
	CHECK(o->nb_rxq != 0 && o->nb_txq != 0);
	CHECK(o->source != SOURCE_PCAP || o->capture != NULL);
	CHECK(o->save_path == NULL || strlen(o->save_path) >= o->save_path_len);
	CHECK(o->save_path == NULL || (o->save_path_len != 0 && o->save_frames != 0));
	CHECK(o->mbuf_size > RTE_PKTMBUF_HEADROOM);
	CHECK(o->fwd.nb_tx_segs >= 1 && o->fwd.nb_tx_segs <= FWD_TX_SEGS_MAX);
	CHECK(o->duration > 0 && o->duration < 1e9); /* NAN fails too */
	CHECK(o->warmup >= 0 && o->settle >= 0);
	CHECK(o->windows != 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words[WORDS_MAX + 2];
	struct options o;
	struct err err = { 0 };
	char *text = malloc(size + 1);
	int n;

	CHECK(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	n = split(text, size, words);
	if (options_parse(&o, n, words, &err) == 0) {
		if (!o.help)
			check_understood(&o);
	} else {
		CHECK(err.code == EXIT_USAGE);
		CHECK(err.text[0] != '\0' && strpbrk(err.text, "\r\n") == NULL);
	}
	free(text);
	return 0;
}
