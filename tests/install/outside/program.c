/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A program outside of the tree: makes an old call, a new one, one from before
 * 1.0 and one of the runtime, and checks that the libraries it runs on are
 * those below the directory given. Compiles as C and as C++.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <librpma.h>
#include <librpma_legacy.h>
#include <rpma_rt.h>

/* Is the library with this function a file below dir? */
static int is_below(const char *dir, void *function)
{
	Dl_info info;

	if (!dladdr(function, &info)) {
		fprintf(stderr, "dladdr failed\n");
		return 0;
	}
	printf("%s\n", info.dli_fname);
	if (strncmp(info.dli_fname, dir, strlen(dir)) == 0)
		return 1;
	fprintf(stderr, "is not below %s\n", dir);
	return 0;
}

/* librpma, with one call of 1.3 and one of 1.4 */
static int uses_librpma(void)
{
	struct rpma_conn_cfg *cfg = NULL;
	uint32_t size = 0;
	int ok;

	if (rpma_conn_cfg_new(&cfg))
		return 0;
	ok = rpma_conn_cfg_set_sq_size(cfg, 20) == 0 &&
	     rpma_conn_cfg_get_sq_size(cfg, &size) == 0 && size == 20 &&
	     rpma_conn_cfg_set_min_rnr_timer(cfg, 12) == 0;
	return rpma_conn_cfg_delete(&cfg) == 0 && !cfg && ok;
}

/* a call that was gone with 1.0 */
static int uses_legacy(void)
{
	struct rpma_completion cmpl;

	return rpma_cq_get_completion(NULL, &cmpl) == RPMA_E_INVAL;
}

static int uses_runtime(void)
{
	const struct rpma_rt_cfg written = RPMA_RT_CFG_INIT;
	struct rpma_rt_cfg cfg;

	return rpma_rt_cfg_init(&cfg, sizeof(cfg)) == 0 &&
	       memcmp(&cfg, &written, sizeof(cfg)) == 0 && cfg.pollers == 1;
}

int main(int argc, char *argv[])
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIR\n", argv[0]);
		return 2;
	}
	if (!is_below(argv[1], (void *)rpma_err_2str) ||
	    !is_below(argv[1], (void *)rpma_rt_err_2str))
		return 1;
	if (strcmp(rpma_err_2str(RPMA_E_INVAL), rpma_rt_err_2str(RPMA_E_INVAL)))
		return 1;
	if (!uses_librpma() || !uses_legacy()) {
		fprintf(stderr, "librpma does not answer as expected\n");
		return 1;
	}
	if (!uses_runtime()) {
		fprintf(stderr, "librpma_rt does not answer as expected\n");
		return 1;
	}
	return 0;
}
