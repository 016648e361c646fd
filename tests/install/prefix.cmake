# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Installs the build directory BUILD into PREFIX, which is made anew. The list of
# installed files that INSTALL.md removes is complete: nothing is left behind it.

set(install ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${install} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND xargs rm -f INPUT_FILE ${BUILD}/install_manifest.txt
	COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE left LIST_DIRECTORIES false ${PREFIX}/*)
if(left)
	message(FATAL_ERROR "not uninstalled: ${left}")
endif()
execute_process(COMMAND ${install} COMMAND_ERROR_IS_FATAL ANY)
