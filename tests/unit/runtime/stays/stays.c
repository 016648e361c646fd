/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A program that loads the library, and unloads it: its code stays where it is,
 * as a look-up of a name may return there at any time.
 *
 * usage: unit_runtime_stays LIBRARY
 */

#include <dlfcn.h>
#include <stdio.h>

typedef const char *(*err_2str)(int ret);

int main(int argc, char **argv)
{
	void *library;
	void *again;
	err_2str call;

	if (argc != 2)
		return 2;
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&call = dlsym(library, "rpma_rt_err_2str");
	if (call == NULL || dlclose(library))
		return 1;
	again = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
	if (again == NULL) {
		fprintf(stderr, "%s was unloaded\n", argv[1]);
		return 1;
	}
	/* the code of before the unloading */
	printf("%s\n", call(0));
	return dlclose(again) != 0;
}
