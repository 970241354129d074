/* SPDX-License-Identifier: BSD-3-Clause */
/* The option parser alone; whole-program tests go through every option. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "options.h"

static int
parse(struct options *o, const char *line, struct err *err)
{
	static char copy[512];
	char *argv[64] = { "--" };
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(o, argc, argv, err);
}

static void
test_defaults(void **state)
{
	struct options o;
	struct err err;

	(void)state;
	assert_int_equal(parse(&o, "", &err), 0);
	assert_string_equal(o.mode->name, "io");
	assert_int_equal(o.burst, 32);
	assert_int_equal(o.nb_cores, 1);
	assert_int_equal(o.windows, 3);
	assert_true(o.duration == 1.0 && o.warmup == 1.0 && o.settle == 0.2);
	assert_int_equal(o.source, SOURCE_DEV);
	assert_true(o.mlockall && o.numa);
	assert_int_equal(o.peer[3].addr_bytes[0], 2);
	assert_int_equal(o.peer[3].addr_bytes[5], 3);
}

static void
test_values(void **state)
{
	struct options o;
	struct err err;

	(void)state;
	assert_int_equal(
			parse(&o, "--forward-mode=macswap --burst 64 --portlist=2,0-1 --txpkts=64,100 --eth-peer=1,00:11:22:33:44:55 --save-pcap=a:b:7 --taint-steal=3 --format=json",
					&err),
			0);
	assert_string_equal(o.mode->name, "macswap");
	assert_int_equal(o.burst, 64);
	assert_int_equal(o.bursts.nb, 1);
	assert_int_equal(o.nb_ports, 3);
	assert_int_equal(o.ports[0], 2);
	assert_int_equal(o.ports[2], 1);
	assert_int_equal(o.fwd.tx_pkt_len, 164);
	assert_int_equal(o.peer[1].addr_bytes[5], 0x55);
	assert_int_equal(o.save_frames, 7);
	assert_int_equal(o.save_path_len, 3);
	assert_true(o.taint_bound[TAINT_STEAL] == 3);
	assert_int_equal(o.format, FORMAT_JSON);
	assert_int_equal(parse(&o, "--source=null:128", &err), 0);
	assert_int_equal(o.source, SOURCE_NULL);
	assert_int_equal(o.null_len, 128);
	assert_int_equal(parse(&o, "--source=pcap:a:b", &err), 0);
	assert_string_equal(o.capture, "a:b");
}

/* A portlist fails with own sources; that is checked once all options are known. */
static const char *const wrong[] = { "--burst=0", "--burst=513", "--burst=x", "--burst=-1",
	"--burst=1e3", "--burst=", "--burst", "--burst=99999999999999999999", "--forward-mode=foo",
	"--nosuch", "--portlist=1,1", "--portlist=3-1", "--portlist=32", "--portlist=,",
	"--portmask=0", "--portmask=zz", "--portmask=1 --portlist=0", "--mlockall --no-mlockall",
	"--txpkts=10", "--txpkts=64,", "--txpkts=4000", "--eth-peer=1", "--eth-peer=1,00:11",
	"--eth-peer=99,0:0:0:0:0:0", "--eth-peer=1,00:11:22:33:44:55:66", "--source=foo",
	"--source=pcap", "--source=pcap:", "--source=null:13", "--source=null:4000",
	"--source=ring:1", "--source=null --portlist=0", "--save-pcap=", "--save-pcap=:5",
	"--save-pcap=x:0", "--duration=0", "--duration=nan", "--duration=inf", "--warmup=-1",
	"--windows=0", "--sibling=x", "--scenario=c1+c6", "--scenario=limit:0", "--format=xml",
	"--taint-foo=1", "--taint-controller=1", "--taint-irqs=x", "--i=1", "-i --tx-first", "-x",
	"word", "--cmdline-file=x --tx-first", "--dry-run=1", "--noisy-lkup-num-reads=5",
	"--mbuf-size=100" };

static void
test_wrong_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct options o;
		struct err err = { 0 };
		char name[64];

		print_message("%s\n", wrong[i]);
		assert_int_equal(parse(&o, wrong[i], &err), -1);
		assert_int_equal(err.code, EXIT_USAGE);
		assert_null(strchr(err.text, '\n'));
		/* The culprit's name, up to its value, stands in the message. */
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(wrong[i], "= "), wrong[i]);
		assert_non_null(strstr(err.text, name));
	}
}

/* The load of the published experiment is above what is forwarded: what the port loses is no taint there. */
static void
lost_frames_are_no_taint_of_reproduce(void **state)
{
	static const struct {
		const char *line;
		double bound;
	} cases[] = { { "", 0 }, { "--reproduce", INFINITY }, { "--reproduce --taint-missed=5", 5 },
		{ "--taint-missed=0 --reproduce", 0 } };
	struct options o;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(&o, cases[i].line, &err), 0);
		assert_true(o.taint_bound[TAINT_MISSED] == cases[i].bound);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_wrong_is_named),
		cmocka_unit_test(lost_frames_are_no_taint_of_reproduce),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
