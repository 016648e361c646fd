# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Installs the build directory BUILD into PREFIX, which is made anew.

file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}
	COMMAND_ERROR_IS_FATAL ANY)
