/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "live.h"
#include "result.h"
#include "sibling.h"
#include "stop.h"
#include "sysroot.h"

#define PERIOD_S 1.0
#define WIDTH_MAX 256

/* Everything that is read at a look. */
struct look {
	struct lcore_edge edges[PLACEMENT_MAX];
	struct rte_eth_stats ports[OPTIONS_PORTS_MAX];
	struct sibling_counts sibling;
	uint64_t ns;
	unsigned int nb_lcores, launches; /* of these, together */
	int sibling_cpu; /* -1: none, or not looked at */
};

static struct look before, now;

static int
look(struct run *r, struct err *err)
{
	struct lcore_clock clock;

	before = now;
	now.nb_lcores = 0;
	if (lcore_take_edge(r->lcores, r->nb_lcores, err) != 0) {
		r->experiment.stuck = true;
		return -1;
	}
	lcore_clock_read(&clock);
	now.ns = clock.raw_ns;
	now.nb_lcores = r->nb_lcores;
	now.launches = 0;
	for (unsigned int i = 0; i < r->nb_lcores; i++) {
		now.edges[i] = r->lcores[i].edge;
		now.launches += r->lcores[i].launches;
	}
	for (unsigned int i = 0; i < r->ports.nb; i++)
		if (r->ports.port[i].closed ||
				rte_eth_stats_get(r->ports.port[i].id, &now.ports[i]) != 0)
			memset(&now.ports[i], 0, sizeof(now.ports[i]));
	now.sibling_cpu = r->placement.nb == 1 ? r->placement.at[0].sibling : -1;
	/* Not woken for it: that would be one wake-up more in what is measured. */
	if (now.sibling_cpu >= 0)
		sibling_read(&r->control, (unsigned int)now.sibling_cpu, false, &now.sibling);
	return 0;
}

/* Whether there is a look to compare with, at the same loops: between two of them is a pause. */
static bool
comparable(void)
{
	return before.ns > 0 && now.ns > before.ns && before.nb_lcores == now.nb_lcores &&
			before.launches == now.launches && before.sibling_cpu == now.sibling_cpu;
}

struct rates {
	double mpps, cycles, empty, dropped; /* dropped: a second */
};

static struct rates
rates_of(const struct run *r, unsigned int lcore)
{
	const struct lcore_edge *a = &before.edges[lcore], *b = &now.edges[lcore];
	bool sent = (r->ports.mode->kind & FWD_COUNTS_SENT) != 0;
	double packets = sent ? (double)(b->counts.tx_packets - a->counts.tx_packets)
			      : (double)(b->counts.rx_packets - a->counts.rx_packets);
	double seconds = 1e-9 * (double)(b->clock.raw_ns - a->clock.raw_ns);
	double polls = (double)(b->counts.polls - a->counts.polls);

	return (struct rates){ .mpps = 1e-6 * packets / seconds,
		.cycles = packets > 0 ? (double)(b->clock.tsc - a->clock.tsc) / packets : NAN,
		.empty = polls > 0 ? 100 * (double)(b->counts.empty_polls - a->counts.empty_polls) /
						polls
				   : NAN,
		.dropped = (double)(b->counts.tx_dropped - a->counts.tx_dropped) / seconds };
}

static double
a_second(uint64_t b, uint64_t a)
{
	return b < a ? 0 : (double)(b - a) / (1e-9 * (double)(now.ns - before.ns));
}

/* What the sibling is made to do: of a visit, or held by a command. */
static const char *
scenario_of(const struct run *r)
{
	return r->control.scenario != NULL ? r->control.scenario->text : "as-is";
}

/* ---- lines ---- */

/* Share of the time in an idle state, in percent. */
static double
share_of(unsigned int state)
{
	const struct idle_state *a = &before.sibling.states.at[state],
				*b = &now.sibling.states.at[state];

	return fmin(100, 100e3 * (double)(b->time_us - a->time_us) / (double)(now.ns - before.ns));
}

static void
print_sibling_line(const struct run *r, FILE *out)
{
	const struct idle_states *states = &now.sibling.states;
	struct sibling_use use;
	char text[WIDTH_MAX];
	size_t used;

	sibling_compare(&r->control, &before.sibling, &now.sibling, now.ns - before.ns, &use);
	used = (size_t)snprintf(
			text, sizeof(text), "sibling %d  %s", now.sibling_cpu, scenario_of(r));
	if (use.entries != UINT64_MAX)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "  %.0f wake-ups/s",
				a_second(use.entries, 0));
	for (unsigned int i = 0; i < states->nb && used < sizeof(text); i++)
		if (states->at[i].usage != before.sibling.states.at[i].usage)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "  %s %.1f %%",
					states->at[i].name, share_of(i));
	if (use.spec_ctrl[0] != '\0' && used < sizeof(text))
		snprintf(text + used, sizeof(text) - used, "  SPEC_CTRL %s", use.spec_ctrl);
	fprintf(out, "%.80s\n", text);
}

int
live_begin(struct run *r, struct err *err)
{
	return look(r, err);
}

int
live_line(struct run *r, FILE *out, struct err *err)
{
	if (look(r, err) != 0)
		return -1;
	if (!comparable())
		return 0;
	for (unsigned int i = 0; i < now.nb_lcores; i++) {
		struct rates x = rates_of(r, i);

		fprintf(out, "lcore %u  %.3f Mpps  %.2f cycles/packet  %.2f %% empty  %.0f dropped/s%s\n",
				r->lcores[i].id, x.mpps, x.cycles, x.empty, x.dropped,
				sys_emulated() ? "  emulated" : "");
	}
	for (unsigned int i = 0; i < r->ports.nb; i++)
		if (now.ports[i].imissed != before.ports[i].imissed ||
				now.ports[i].rx_nombuf != before.ports[i].rx_nombuf)
			fprintf(out, "port %u  %.0f missed/s  %.0f without an mbuf/s\n",
					r->ports.port[i].id,
					a_second(now.ports[i].imissed, before.ports[i].imissed),
					a_second(now.ports[i].rx_nombuf,
							before.ports[i].rx_nombuf));
	if (now.sibling_cpu >= 0)
		print_sibling_line(r, out);
	return 0;
}

/* ---- the screen ---- */

#define CLEAR "\033[H\033[J" /* ECMA-48: home, erase to the end */

struct screen {
	unsigned int rows, columns, row;
};

/* A line, as far as the screen has room. */
static void __attribute__((format(printf, 2, 3))) line(struct screen *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (s->row + 1 >= s->rows)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("%.*s\n", (int)RTE_MIN(s->columns, sizeof(text)), text);
	s->row++;
}

#define BAR 20

static void
draw_sibling(const struct run *r, struct screen *s)
{
	const struct idle_states *states = &now.sibling.states;
	struct sibling_use use;

	sibling_compare(&r->control, &before.sibling, &now.sibling, now.ns - before.ns, &use);
	line(s, " ");
	line(s, "sibling CPU %d (%s)  scenario %s", now.sibling_cpu,
			relation_word(r->placement.at[0].relation), scenario_of(r));
	if (use.spec_ctrl[0] != '\0')
		line(s, "SPEC_CTRL in idle: %s", use.spec_ctrl);
	if (states->nb == 0)
		line(s, "its idle states are not known here");
	else
		line(s, "%-12s %12s %9s", "idle state", "wake-ups/s", "time %");
	for (unsigned int i = 0; i < states->nb; i++) {
		double share = share_of(i);

		line(s, "%-12s %12.0f %9.2f  %.*s", states->at[i].name,
				a_second(states->at[i].usage, before.sibling.states.at[i].usage),
				share, (int)(share * BAR / 100 + 0.5), "####################");
	}
}

static void
draw(const struct run *r)
{
	const struct options *o = &r->options;
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	struct screen s = { 24, 80, 0 };
	char utc[32];

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		s = (struct screen){ size.ws_row, size.ws_col, 0 };
	result_utc(utc, sizeof(utc));
	fputs(CLEAR, stdout);
	line(&s, "dpdk-sibfwd  %.19sZ  %s  burst %u  %s%s", utc, r->ports.mode->name,
			r->nb_lcores > 0 ? r->lcores[0].burst : 0, o->source_text,
			sys_emulated() ? "  emulated" : "");
	line(&s, " ");
	line(&s, "%5s %5s %12s %14s %9s %12s", "lcore", "CPU", "Mpps", "cycles/packet", "empty %",
			"dropped/s");
	for (unsigned int i = 0; i < now.nb_lcores; i++) {
		struct rates x = rates_of(r, i);

		line(&s, "%5u %5d %12.3f %14.2f %9.2f %12.0f", r->lcores[i].id, r->lcores[i].cpu,
				x.mpps, x.cycles, x.empty, x.dropped);
	}
	line(&s, " ");
	line(&s, "%5s %18s %14s %9s %12s", "port", "RX Mpps", "TX Mpps", "missed/s", "no mbuf/s");
	for (unsigned int i = 0; i < r->ports.nb; i++) {
		const struct rte_eth_stats *a = &before.ports[i], *b = &now.ports[i];

		line(&s, "%5u %18.3f %14.3f %9.0f %12.0f", r->ports.port[i].id,
				1e-6 * a_second(b->ipackets, a->ipackets),
				1e-6 * a_second(b->opackets, a->opackets),
				a_second(b->imissed, a->imissed),
				a_second(b->rx_nombuf, a->rx_nombuf));
	}
	if (now.sibling_cpu >= 0)
		draw_sibling(r, &s);
	printf("any key ends this");
	fflush(stdout);
}

/* A second, or until a key is pressed, which is taken. */
static bool
pressed(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char key;

	return poll(&in, 1, (int)(1000 * PERIOD_S)) > 0 && read(STDIN_FILENO, &key, 1) <= 1;
}

int
live_show(struct run *r, bool typing, unsigned int seconds, struct err *err)
{
	bool screen = typing && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	unsigned int shown = 0;

	if (look(r, err) != 0)
		return -1;
	while (!stop_asked() &&
			(screen ? seconds == 0 || shown < seconds : shown < RTE_MAX(seconds, 1u))) {
		if (screen && pressed())
			break;
		if (!screen)
			stop_sleep(PERIOD_S);
		if (screen && look(r, err) != 0)
			return -1;
		if (screen && comparable())
			draw(r);
		else if (!screen && live_line(r, stdout, err) != 0)
			return -1;
		fflush(stdout);
		shown++;
		if (ports_check(&r->ports, err) != 0)
			return -1;
	}
	if (screen)
		printf("\r\033[K");
	return 0;
}
