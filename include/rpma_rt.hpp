/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * librpma_rt for C++20: owners, results and coroutines over rpma_rt.h.
 * rpma_rt_cpp(7) describes the model; each class has a page of signatures with
 * an example, called rpma_rt_cpp_CLASS(7). The comment of a class says:
 *
 *   Owner   the owner of the object, and the objects that the object keeps
 *   Thread  the threads that may use the object; the loop's: the thread that
 *           runs the loop
 *   End     the effect of the destructor
 *   Errors  the errors of the functions; errors are values, result<T> and
 *           outcome<N>, and value() throws a failure instead
 *
 * Owners may be destroyed in any order. A coroutine may be destroyed wherever
 * suspended: a posted operation goes on, and the lease of the operation goes
 * back to the pool later.
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
