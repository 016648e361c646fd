/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Native and emulated flush. All emulated flushes of a protection domain share
 * a buffer, from the first user to the last: a page and a mapping for each
 * connection would soon exceed the limits of a process. The buffer is made and
 * freed without holding the lock.
 */

#include "flush.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "err.h"
#include "log.h"
#include "peer.h"
#include "verbs_compat.h"

struct rpma__flush_buffer {
	const struct ibv_pd *pd;
	void *raw;
	size_t size; /* as mapped */
	struct rpma_mr_local *mr;
	/* under the lock */
	unsigned users;
	struct rpma__flush_buffer *next;
};

static struct {
	pthread_mutex_t lock;
	struct rpma__flush_buffer *list;
} buffers = {.lock = PTHREAD_MUTEX_INITIALIZER};

void rpma__flush_lock(void)
{
	pthread_mutex_lock(&buffers.lock);
}

void rpma__flush_unlock(void)
{
	pthread_mutex_unlock(&buffers.lock);
}

/* Maps a separate page, so that no other data is affected by a fork. */
static int flush_map_raw(struct rpma__flush_buffer *buffer)
{
	long page = sysconf(_SC_PAGESIZE);
	void *raw;

	if (page < 0) {
		RPMA_LOG_FATAL("sysconf(_SC_PAGESIZE) failed: %s",
			       rpma__errno_2str(-1));
		return RPMA_E_PROVIDER;
	}
	raw = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (raw == MAP_FAILED)
		return RPMA_REFUSE_NOMEM("the buffer of flushes");
	buffer->raw = raw;
	buffer->size = (size_t)page;
	return 0;
}

static int flush_buffer_new(struct rpma_peer *peer,
			    struct rpma__flush_buffer **buffer_ptr)
{
	struct rpma__flush_buffer *buffer = calloc(1, sizeof(*buffer));
	int ret;

	if (buffer == NULL)
		return RPMA_REFUSE_NOMEM("the buffer of flushes");
	buffer->pd = peer->pd;
	ret = flush_map_raw(buffer);
	if (ret)
		goto err_free;
	ret = rpma_mr_reg(peer, buffer->raw, RPMA__RAW_SIZE,
			  RPMA_MR_USAGE_READ_DST, &buffer->mr);
	if (ret)
		goto err_unmap;
	*buffer_ptr = buffer;
	return 0;
err_unmap:
	(void)munmap(buffer->raw, buffer->size);
err_free:
	free(buffer);
	return ret;
}

static int flush_buffer_delete(struct rpma__flush_buffer *buffer)
{
	int ret = rpma_mr_dereg(&buffer->mr);

	if (munmap(buffer->raw, buffer->size)) {
		RPMA_LOG_CALL("munmap", -1);
		rpma__err_first(&ret, RPMA_E_INVAL);
	}
	free(buffer);
	return ret;
}

/* Returns the buffer of the protection domain, with one more user. If the
 * protection domain has no buffer, lists and returns made; made may be NULL. */
static struct rpma__flush_buffer *
flush_buffer_use(const struct ibv_pd *pd, struct rpma__flush_buffer *made)
{
	struct rpma__flush_buffer *buffer;

	pthread_mutex_lock(&buffers.lock);
	buffer = buffers.list;
	while (buffer != NULL && buffer->pd != pd)
		buffer = buffer->next;
	if (buffer == NULL && made != NULL) {
		made->next = buffers.list;
		buffers.list = made;
		buffer = made;
	}
	if (buffer != NULL)
		buffer->users++;
	pthread_mutex_unlock(&buffers.lock);
	return buffer;
}

/* Removes a user; returns true if the user was the last. */
static bool flush_buffer_leave(struct rpma__flush_buffer *buffer)
{
	struct rpma__flush_buffer **link = &buffers.list;
	bool is_last;

	pthread_mutex_lock(&buffers.lock);
	is_last = --buffer->users == 0;
	if (is_last) {
		while (*link != buffer)
			link = &(*link)->next;
		*link = buffer->next;
	}
	pthread_mutex_unlock(&buffers.lock);
	return is_last;
}

static int flush_init_emulated(struct rpma__flush *flush,
			       struct rpma_peer *peer)
{
	struct rpma__flush_buffer *buffer = flush_buffer_use(peer->pd, NULL);
	struct rpma__flush_buffer *made;
	int ret = 0;

	if (buffer == NULL) {
		ret = flush_buffer_new(peer, &made);
		if (ret)
			return ret;
		buffer = flush_buffer_use(peer->pd, made);
		if (buffer != made) /* another thread was faster */
			(void)flush_buffer_delete(made);
	}
	flush->buffer = buffer;
	flush->raw = buffer->raw;
	flush->raw_mr = buffer->mr;
	return 0;
}

int rpma__flush_new(struct rpma_peer *peer, struct ibv_qp *qp,
		    struct rpma__flush **flush_ptr)
{
	struct rpma__flush *flush = calloc(1, sizeof(*flush));
	int ret = 0;

	if (flush == NULL)
		return RPMA_REFUSE_NOMEM("a connection's flushes");
	if (!rpma__qp_has_flush(qp))
		ret = flush_init_emulated(flush, peer);
	if (ret) {
		free(flush);
		return ret;
	}
	*flush_ptr = flush;
	return 0;
}

int rpma__flush_delete(struct rpma__flush **flush_ptr)
{
	struct rpma__flush *flush = *flush_ptr;
	int ret = 0;

	if (flush == NULL)
		return 0;

	if (flush->buffer && flush_buffer_leave(flush->buffer))
		ret = flush_buffer_delete(flush->buffer);
	free(flush);
	*flush_ptr = NULL;
	return ret;
}

void rpma__flush_abandon(struct rpma__flush **flush_ptr)
{
	struct rpma__flush *flush = *flush_ptr;
	struct rpma__flush_buffer *buffer;

	if (flush == NULL)
		return;
	buffer = flush->buffer;
	if (buffer && flush_buffer_leave(buffer)) {
		/* only the memory: the region itself belongs to the parent too
		 */
		free(buffer->mr);
		(void)munmap(buffer->raw, buffer->size);
		free(buffer);
	}
	free(flush);
	*flush_ptr = NULL;
}
