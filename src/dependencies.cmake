# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# What the libraries need, and what only the tests do. A package that is missing
# is named as Debian has it, with the option that does without it.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# need(PREFIX PACKAGE ADVICE MODULE...): PkgConfig::PREFIX, or the end.
function(need prefix package advice)
	pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${ARGN})
	if(NOT ${prefix}_FOUND)
		list(JOIN ARGN " and " modules)
		message(FATAL_ERROR "pkg-config does not find ${modules}: "
			"install ${package} (its name in Debian). ${advice}")
	endif()
endfunction()

need(IBVERBS libibverbs-dev "" libibverbs)
need(RDMACM librdmacm-dev "" librdmacm)
if(RPMA_RUNTIME)
	need(URCU liburcu-dev "-DRPMA_RUNTIME=OFF builds librpma without it."
		liburcu-bp liburcu-cds)
endif()

# The loopback device knows what verbs have had since rdma-core 44.
set(RPMA_LOOPBACK ON)
if(IBVERBS_VERSION VERSION_LESS 1.14.44)
	set(RPMA_LOOPBACK OFF)
	message(STATUS "The loopback device is left out: "
		"it needs libibverbs 1.14.44, this is ${IBVERBS_VERSION}")
endif()

# Why the tests cannot be built; empty if they can.
function(why_no_tests words)
	set(why "")
	pkg_check_modules(RPMA_CMOCKA QUIET cmocka)
	if(NOT RPMA_RUNTIME)
		set(why "they need the runtime, and RPMA_RUNTIME is OFF")
	elseif(NOT RPMA_LOOPBACK)
		set(why "they need the loopback device")
	elseif(NOT RPMA_CMOCKA_FOUND)
		set(why "they need cmocka: install libcmocka-dev")
	endif()
	set(${words} "${why}" PARENT_SCOPE)
endfunction()

# Asked for, tests have to be possible; else they are left out, in words.
why_no_tests(why)
if(BUILD_TESTING AND why)
	message(FATAL_ERROR "BUILD_TESTING is ON, but the tests cannot be "
		"built: ${why}. -DBUILD_TESTING=OFF builds without them.")
elseif(NOT DEFINED BUILD_TESTING AND why)
	message(STATUS "The tests are left out: ${why}")
	set(BUILD_TESTING OFF CACHE BOOL "Build the testing tree.")
endif()
