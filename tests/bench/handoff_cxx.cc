/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The ways of libraries for C++: a queue for each destination, which the groups
 * of a batch go into in bulk where the queue has a call for that. Where a
 * library is not installed, its way says so.
 */

#include <cstddef>
#include <cstdint>

#if __has_include(<boost/lockfree/spsc_queue.hpp>)
#define HAVE_BOOST
#include <boost/lockfree/spsc_queue.hpp>
#endif
#if __has_include(<concurrentqueue/concurrentqueue.h>)
#define HAVE_MOODY
#include <concurrentqueue/concurrentqueue.h>
#endif
#if __has_include(<readerwriterqueue/readerwriterqueue.h>)
#define HAVE_RWQ
#include <readerwriterqueue/readerwriterqueue.h>
#endif

#include "rpma_rt.h"

extern "C" {
#include "bench.h"
#include "handoff_way.h"
}

namespace
{

using item = rpma_rt_completion;
[[maybe_unused]] constexpr size_t slots = 2 * IN_FLIGHT;

#ifdef HAVE_BOOST
struct boost_queue {
	boost::lockfree::spsc_queue<item, boost::lockfree::capacity<slots>> q;

	size_t push(const item *items, size_t count)
	{
		return q.push(items, count);
	}
	size_t pop(item *items, size_t max) { return q.pop(items, max); }
};
#endif

#ifdef HAVE_MOODY
struct moody_queue {
	moodycamel::ConcurrentQueue<item> q{4 * slots};
	moodycamel::ProducerToken producer{q};
	moodycamel::ConsumerToken consumer{q};

	size_t push(const item *items, size_t count)
	{
		return q.try_enqueue_bulk(producer, items, count) ? count : 0;
	}
	size_t pop(item *items, size_t max)
	{
		return q.try_dequeue_bulk(consumer, items, max);
	}
};
#endif

#ifdef HAVE_RWQ
struct rwq_queue {
	moodycamel::ReaderWriterQueue<item> q{slots};

	size_t push(const item *items, size_t count)
	{
		size_t done = 0;

		while (done < count && q.try_enqueue(items[done]))
			done++;
		return done;
	}
	size_t pop(item *items, size_t max)
	{
		size_t done = 0;

		while (done < max && q.try_dequeue(items[done]))
			done++;
		return done;
	}
};
#endif

template <typename Q> struct queues {
	Q of[MAX_FANOUT];
	handoff_group groups[MAX_FANOUT]{};
};

template <typename Q> void init(handoff *h)
{
	h->state = new queues<Q>;
}

template <typename Q>
void send_all(handoff *h, const ibv_wc *wcs, uint32_t count)
{
	auto *all = static_cast<queues<Q> *>(h->state);

	handoff_group_batch(h, all->groups, wcs, count);
	for (uint32_t i = 0; i < h->fanout; i++) {
		auto &group = all->groups[i];

		if (group.count == 0)
			continue;
		if (all->of[i].push(group.items, group.count) != group.count)
			bench_fail("a queue is full");
		group.count = 0;
	}
}

template <typename Q> uint32_t take(handoff *h, uint32_t at, uint64_t *sum)
{
	auto *all = static_cast<queues<Q> *>(h->state);
	item items[BATCH];
	size_t got = all->of[at].pop(items, BATCH);

	for (size_t i = 0; i < got; i++)
		*sum += items[i].context + (items[i].status != 0);
	return static_cast<uint32_t>(got);
}

[[maybe_unused]] void no_boost(handoff *)
{
	bench_missing("boost::lockfree to compare with", "libboost-dev");
}

[[maybe_unused]] void no_moody(handoff *)
{
	bench_missing("moodycamel::ConcurrentQueue to compare with",
		      "libconcurrentqueue-dev");
}

[[maybe_unused]] void no_rwq(handoff *)
{
	bench_missing("moodycamel::ReaderWriterQueue to compare with",
		      "libreaderwriterqueue-dev");
}

} // namespace

#define WAY(name, Q) {name, init<Q>, send_all<Q>, take<Q>}

extern "C" {
extern const handoff_way handoff_boost, handoff_moody, handoff_rwq;

#ifdef HAVE_BOOST
const handoff_way handoff_boost = WAY("boost", boost_queue);
#else
const handoff_way handoff_boost = {"boost", no_boost, nullptr, nullptr};
#endif
#ifdef HAVE_MOODY
const handoff_way handoff_moody = WAY("moody", moody_queue);
#else
const handoff_way handoff_moody = {"moody", no_moody, nullptr, nullptr};
#endif
#ifdef HAVE_RWQ
const handoff_way handoff_rwq = WAY("rwq", rwq_queue);
#else
const handoff_way handoff_rwq = {"rwq", no_rwq, nullptr, nullptr};
#endif
}
