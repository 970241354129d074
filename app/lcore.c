/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_pause.h>

#include "fwd.h"
#include "lcore.h"

#define ANSWER_TIMEOUT_S 5

static void
add_counts(struct lcore_counts *sum, const struct lcore_counts *c)
{
	sum->rx_packets += c->rx_packets;
	sum->tx_packets += c->tx_packets;
	sum->tx_dropped += c->tx_dropped;
	sum->polls += c->polls;
	sum->empty_polls += c->empty_polls;
	sum->busy_cycles += c->busy_cycles;
}

bool
lcore_answer(struct lcore *lc, bool snapshot, uint32_t asked)
{
	struct lcore_edge *edge = &lc->edge;
	bool stop;

	if (snapshot) {
		lcore_clock_read(&edge->clock);
		edge->counts = (struct lcore_counts){ 0 };
		for (unsigned int i = 0; i < lc->nb_streams; i++) {
			struct fwd_stream *st = lc->streams[i];

			st->edge = st->counts;
			st->edge.tx_dropped += st->dropped;
			add_counts(&edge->counts, &st->edge);
		}
		edge->saving = (lc->record & LCORE_RECORD_FRAMES) != 0 &&
				lc->saved.count < lc->saved.limit;
		if (lc->bursts != NULL)
			memcpy(edge->bursts, lc->bursts, sizeof(edge->bursts));
	}
	stop = atomic_load_explicit(&lc->stop, memory_order_relaxed);
	atomic_store_explicit(&lc->edge_done, asked, memory_order_release);
	return stop;
}

bool
lcore_runs_pair_loop(const struct lcore *lc)
{
	return lc->record % LCORE_RECORD_LOOPS == 0 && fwd_is_pair(lc->streams, lc->nb_streams);
}

/* The forwarding thread: copy frames while that is asked for, then the loop that is measured. */
static int
lcore_run(void *arg)
{
	struct lcore *lc = arg;
	bool stopped = false;

	atomic_store(&lc->tid, gettid());
	if ((lc->record & LCORE_RECORD_FRAMES) != 0)
		stopped = lc->mode->save_loop(lc);
	if (stopped)
		return 0;
	if (lcore_runs_pair_loop(lc))
		lc->mode->pair_loop(lc);
	else
		lc->mode->loops[lc->record % LCORE_RECORD_LOOPS](lc);
	return 0;
}

int
lcore_launch(struct lcore *lc, struct err *err)
{
	int rc = rte_eal_remote_launch(lcore_run, lc, lc->id);

	if (rc != 0)
		return err_set(err, EXIT_FAILED, "lcore %u does not start: %s", lc->id,
				strerror(-rc));
	return 0;
}

int
lcore_launch_all(struct lcore *lcs, unsigned int n, uint16_t burst,
		const struct fwd_lookups *lookups, unsigned int *launched, struct err *err)
{
	for (*launched = 0; *launched < n; (*launched)++) {
		struct lcore *lc = &lcs[*launched];

		lc->burst = burst;
		lc->launches++;
		for (unsigned int s = 0; s < lc->nb_streams; s++) {
			lc->streams[s]->burst = burst;
			lc->streams[s]->lookups = *lookups;
		}
		atomic_store(&lc->stop, false);
		if (lcore_launch(lc, err) != 0)
			return -1;
	}
	return 0;
}

/* A thread answers within one turn of its loop, so this spins before it sleeps. */
static int
wait_answer(struct lcore *lc, struct err *err)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	uint64_t start = rte_get_timer_cycles();
	uint64_t hz = rte_get_timer_hz();
	uint32_t asked = atomic_load(&lc->edge_asked);

	while (atomic_load_explicit(&lc->edge_done, memory_order_acquire) != asked) {
		uint64_t waited = rte_get_timer_cycles() - start;

		if (waited > ANSWER_TIMEOUT_S * hz)
			return err_set(err, EXIT_FAILED,
					"lcore %u (CPU %d) has not answered for %d s: its driver hangs, or a burst takes that long",
					lc->id, lc->cpu, ANSWER_TIMEOUT_S);
		if (waited > hz / 1000)
			nanosleep(&nap, NULL);
		else
			rte_pause();
	}
	return 0;
}

int
lcore_take_edge(struct lcore *lcs, unsigned int n, struct err *err)
{
	for (unsigned int i = 0; i < n; i++)
		atomic_fetch_add_explicit(&lcs[i].edge_asked, 1, memory_order_release);
	for (unsigned int i = 0; i < n; i++)
		if (wait_answer(&lcs[i], err) != 0)
			return -1;
	return 0;
}

int
lcore_stop(struct lcore *lcs, unsigned int n, struct err *err)
{
	for (unsigned int i = 0; i < n; i++)
		atomic_store(&lcs[i].stop, true);
	if (lcore_take_edge(lcs, n, err) != 0)
		return -1;
	for (unsigned int i = 0; i < n; i++)
		rte_eal_wait_lcore(lcs[i].id);
	return 0;
}
