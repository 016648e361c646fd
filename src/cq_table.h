/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * All CQs of the library by ibv_cq, so that a CQ of the library is recognized
 * without touching the memory of a foreign CQ. Any thread.
 *
 * Deleting. The device says only in ibv_destroy_cq() whether the CQ may go, and
 * afterwards the address may belong to a new CQ. So a CQ that is being deleted
 * is marked as leaving, and stays in the table until the outcome is known. A
 * reader of a channel that holds an event of a leaving CQ acknowledges the
 * event, because ibv_destroy_cq() waits for the acknowledgement, then waits for
 * the outcome: the reader reports a CQ that stays, because the CQ is armed no
 * more, and nobody else would poll the CQ.
 *
 * Nothing waits in a circle. A reader that waits for the outcome has
 * acknowledged its event, holds no lock, and, as the page asks, has no other
 * event of the CQ in hand. The deleting thread waits for
 * acknowledgements, and after the outcome for the pins of readers, who need the
 * lock of the table only. No thread holds the lock while the thread calls
 * verbs. A reader disables cancellation from the pin to the end.
 *
 * A child of fork() has the table, but neither the readers nor the deleting
 * threads of its parent. The child finds the lock free and makes the condition
 * anew; pins of the parent's readers count for nothing there, because the child
 * forgets CQs of the parent without waiting.
 */

#ifndef RPMA_CQ_TABLE_H
#define RPMA_CQ_TABLE_H 1

#include "librpma.h"

/* Adds a CQ; cq->cq is set. */
void rpma__cq_table_add(struct rpma_cq *cq);
/*
 * Marks a CQ as leaving, before its ibv_cq is destroyed. leaving false: the
 * device has refused, and the CQ stays.
 */
void rpma__cq_table_set_leaving(struct rpma_cq *cq, bool leaving);
/*
 * Removes a CQ whose ibv_cq is destroyed, and waits until no reader has the CQ
 * pinned: afterwards the caller may free the CQ.
 */
void rpma__cq_table_remove(struct rpma_cq *cq);
/*
 * Removes a CQ of the parent in a child of fork(), unless a thread of the
 * parent, which was deleting the CQ, has removed the CQ already.
 */
void rpma__cq_table_forget(struct rpma_cq *cq);

/*
 * Finds a CQ, leaving or not; returns NULL if ibv_cq belongs to no CQ of this
 * library. ibv_cq is compared, and followed only if a leaving CQ has the same
 * address.
 */
struct rpma_cq *rpma__cq_table_find(const struct ibv_cq *ibv_cq);
/*
 * Finds the CQ of an event that is not acknowledged yet, and pins the CQ: the
 * memory stays until unpin. Returns NULL if the library has no such CQ.
 * Cancellation is disabled.
 */
struct rpma_cq *rpma__cq_table_pin(const struct ibv_cq *ibv_cq);
/*
 * Undoes a pin, after the acknowledgement: waits while the CQ is leaving, and
 * returns cq, or NULL if the CQ is deleted. cq may be NULL.
 */
struct rpma_cq *rpma__cq_table_unpin(struct rpma_cq *cq);

/*
 * Locks the table while a process forks, so that the child finds the table
 * whole and unlocked. The child makes the condition anew.
 */
void rpma__cq_table_lock(void);
void rpma__cq_table_unlock(void);
void rpma__cq_table_renew(void);

#endif /* RPMA_CQ_TABLE_H */
