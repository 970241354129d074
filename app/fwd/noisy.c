/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * noisy: forward as a network function would that holds frames back for a while and looks
 * things up in memory. What is done to the frames themselves is another mode's: io, mac, macswap
 * or 5tswap. Without a buffer and look-ups nothing is left but that.
 */
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_random.h>

#include "loop.h"

/*
 * Frames held back, first in first out, for one thread: a ring of a power of two, of which one
 * place stays free, as in testpmd's.
 */
struct noisy_fifo {
	struct rte_mbuf **frames;
	uint32_t size;
	uint32_t head; /* count of frames taken out; its place is head % size */
	uint32_t tail; /* count of frames put in */
};

struct noisy {
	fwd_process inner; /* of the mode wrapped; NULL for io */
	struct noisy_fifo fifo;
	uint64_t flush_cycles; /* hold frames no longer; 0: until pushed out */
	uint64_t flushed; /* when frames were flushed last; 0: never */
	uint32_t flushing; /* frames still to be flushed */

	uint8_t *memory;
	uint64_t places; /* that are looked up, one byte each */
	uint64_t random; /* state of the generator, never 0 */
};

static int
noisy_check(const struct fwd_options *o, struct err *err)
{
	if (o->noisy_buffer != 0 && !rte_is_power_of_2(o->noisy_buffer))
		return err_set(err, EXIT_USAGE,
				"--noisy-tx-sw-buffer-size: %u is not a power of two",
				o->noisy_buffer);
	if (o->noisy_mode != NULL && (o->noisy_mode->init != NULL || o->noisy_mode->kind != 0))
		return err_set(err, EXIT_USAGE, "--noisy-forward-mode: noisy cannot wrap %s",
				o->noisy_mode->name);
	return 0;
}

/* Allocate what the options ask for. Returns 0, or -1 with err set. */
static int
noisy_allocate(struct noisy *ns, const struct fwd_stream *st, struct err *err)
{
	const struct fwd_options *o = st->options;

	if (o->noisy_buffer != 0) {
		ns->fifo.size = o->noisy_buffer;
		ns->fifo.frames = rte_zmalloc_socket("noisy buffer",
				(size_t)ns->fifo.size * sizeof(ns->fifo.frames[0]),
				RTE_CACHE_LINE_SIZE, st->socket);
		if (ns->fifo.frames == NULL)
			return err_set(err, EXIT_FAILED,
					"--noisy-tx-sw-buffer-size: no memory for %u frames",
					o->noisy_buffer);
	}
	if (o->noisy_memory_mib != 0) {
		ns->memory = rte_zmalloc_socket("noisy memory", o->noisy_memory_mib << 20,
				RTE_CACHE_LINE_SIZE, st->socket);
		if (ns->memory == NULL)
			return err_set(err, EXIT_FAILED,
					"--noisy-lkup-memory: no memory for %" PRIu64 " MiB",
					o->noisy_memory_mib);
	}
	return 0;
}

static void
noisy_fini(struct fwd_stream *st)
{
	struct noisy *ns = st->priv;

	if (ns == NULL)
		return;
	for (struct noisy_fifo *f = &ns->fifo; f->head != f->tail; f->head++)
		rte_pktmbuf_free(f->frames[f->head & (f->size - 1)]);
	rte_free(ns->fifo.frames);
	rte_free(ns->memory);
	rte_free(ns);
	st->priv = NULL;
}

static int
noisy_init(struct fwd_stream *st, struct err *err)
{
	const struct fwd_options *o = st->options;
	struct noisy *ns;

	if (noisy_check(o, err) != 0)
		return -1;
	ns = rte_zmalloc_socket("noisy", sizeof(*ns), RTE_CACHE_LINE_SIZE, st->socket);
	if (ns == NULL)
		return err_set(err, EXIT_FAILED, "noisy: out of memory");
	st->priv = ns;
	if (noisy_allocate(ns, st, err) != 0) {
		noisy_fini(st);
		return -1;
	}
	if (o->noisy_mode != NULL && strcmp(o->noisy_mode->name, "io") != 0)
		ns->inner = o->noisy_mode->process;
	if (o->noisy_buffer != 0)
		ns->flush_cycles = (uint64_t)o->noisy_flush_ms * (rte_get_timer_hz() / 1000);
	/* testpmd indexes bytes by cache lines: what it reaches is a 64th of the memory. */
	ns->places = (o->noisy_memory_mib << 20) / RTE_CACHE_LINE_SIZE;
	ns->random = rte_rand() | 1;
	return 0;
}

/* xorshift64* (Vigna 2016): a few cycles, so that the look-ups weigh and not the dice. */
static __rte_always_inline uint64_t
noisy_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static __rte_always_inline uint8_t *
noisy_place(struct noisy *ns)
{
	return ns->memory +
			(uint64_t)(((unsigned __int128)noisy_random(&ns->random) * ns->places) >>
					64);
}

static __rte_always_inline void
noisy_read(struct noisy *ns)
{
	/* A load whose value nobody wants has to be forced. */
	(void)*(const volatile uint8_t *)noisy_place(ns);
}

static __rte_always_inline void
noisy_write(struct noisy *ns)
{
	uint8_t *place = noisy_place(ns);

	*(volatile uint8_t *)place = (uint8_t)ns->random;
}

static void
noisy_lookups(const struct fwd_stream *st, struct noisy *ns, uint16_t n)
{
	const struct fwd_lookups *l = &st->lookups;

	if (likely((l->reads | l->writes | l->reads_writes) == 0))
		return;
	for (uint16_t i = 0; i < n; i++) {
		for (uint64_t j = 0; j < l->writes; j++)
			noisy_write(ns);
		for (uint64_t j = 0; j < l->reads; j++)
			noisy_read(ns);
		for (uint64_t j = 0; j < l->reads_writes; j++) {
			noisy_read(ns);
			noisy_write(ns);
		}
	}
}

/* Put frames in; there is room for n. */
static void
noisy_put(struct noisy_fifo *f, struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		f->frames[f->tail++ & (f->size - 1)] = pkts[i];
}

/* Take out n frames, which there are. */
static void
noisy_take(struct noisy_fifo *f, struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		pkts[i] = f->frames[f->head++ & (f->size - 1)];
}

/*
 * The buffer is too full for n more frames: as many old ones leave as new ones come in. If it
 * holds fewer than that, the rest of the new ones is dropped. Returns how many frames leave.
 */
static uint16_t
noisy_exchange(struct fwd_stream *st, struct noisy_fifo *f, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t out = (uint16_t)RTE_MIN(f->tail - f->head, (uint32_t)n);

	if (out < n) {
		rte_pktmbuf_free_bulk(&pkts[out], n - out);
		st->dropped += n - out;
	}
	/* A place is read before it is written: the old frame's is never behind the new one's. */
	for (uint16_t i = 0; i < out; i++) {
		struct rte_mbuf *old = f->frames[f->head++ & (f->size - 1)];

		f->frames[f->tail++ & (f->size - 1)] = pkts[i];
		pkts[i] = old;
	}
	return out;
}

/*
 * Take out all frames, in as many turns as that takes, once none has left for the time given.
 * Returns how many leave in this turn.
 */
static uint16_t
noisy_flush(struct noisy *ns, struct rte_mbuf **pkts)
{
	struct noisy_fifo *f = &ns->fifo;
	uint64_t now = rte_get_timer_cycles();
	uint16_t out;

	if (ns->flushed == 0)
		ns->flushed = now;
	if (ns->flushing == 0 && now - ns->flushed >= ns->flush_cycles)
		ns->flushing = f->tail - f->head;
	if (ns->flushing == 0)
		return 0;
	out = (uint16_t)RTE_MIN(ns->flushing, (uint32_t)LCORE_BURST_MAX);
	noisy_take(f, pkts, out);
	ns->flushing -= out;
	ns->flushed = now;
	return out;
}

static uint16_t
noisy_hold(struct fwd_stream *st, struct noisy *ns, struct rte_mbuf **pkts, uint16_t n)
{
	struct noisy_fifo *f = &ns->fifo;
	uint16_t out = 0;

	if (n != 0 && f->size - 1 - (f->tail - f->head) >= n) {
		noisy_put(f, pkts, n);
		noisy_lookups(st, ns, n);
	} else if (n != 0) {
		out = noisy_exchange(st, f, pkts, n);
		noisy_lookups(st, ns, out);
		ns->flushing -= RTE_MIN(ns->flushing, (uint32_t)out);
	}
	if (ns->flush_cycles != 0 && out == 0)
		out = noisy_flush(ns, pkts);
	return out;
}

static __rte_always_inline uint16_t
noisy_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	struct noisy *ns = st->priv;

	if (ns->inner != NULL && n != 0)
		n = ns->inner(st, pkts, n);
	if (ns->fifo.size != 0)
		return noisy_hold(st, ns, pkts, n);
	noisy_lookups(st, ns, n);
	return n;
}

FWD_MODE(noisy, "noisy", FWD_EVERY_TURN, noisy_process, noisy_init, noisy_fini);
