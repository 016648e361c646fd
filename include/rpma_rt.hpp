/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * librpma_rt for C++20: owners, results, and coroutines over rpma_rt.h; in
 * the headers of rpma_rt/, which this includes. rpma_rt_cpp(7) describes the
 * model.
 *
 * A loop takes the items of one queue, and one thread runs it. A connection
 * belongs to a loop, and everything of it happens on that thread: only
 * runtime, peer, memory, remote_memory, pool, lease and loop_ref may be used by
 * others. Owners may be destroyed in any order; what they need stays.
 *
 * An operation takes a lease, a slot of a pool, which goes into the
 * connection's memory while the device has it, and comes back with the result.
 * So a coroutine may be destroyed wherever it is suspended: what is posted
 * goes on, and the slot is given back when that is complete. The functions
 * called _raw take memory that the program registered: that has to stay until
 * the operation is complete, or the connection closed.
 *
 * Errors are values: result<T>, outcome<N>. value() throws a failure instead.
 */

#ifndef RPMA_RT_HPP
#define RPMA_RT_HPP

#include <rpma_rt/error.hpp>
#include <rpma_rt/owner.hpp>
#include <rpma_rt/receive.hpp>
#include <rpma_rt/task.hpp>
#include <rpma_rt/group.hpp>
#include <rpma_rt/loop.hpp>
#include <rpma_rt/conn.hpp>
#include <rpma_rt/listener.hpp>
#include <rpma_rt/shard.hpp>
#include <rpma_rt/sync.hpp>

#endif /* RPMA_RT_HPP */
