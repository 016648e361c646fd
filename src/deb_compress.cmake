# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Run by cpack on what it is about to pack: manual pages and changes are
# compressed in packages of Debian, without a time in them.

file(GLOB_RECURSE files ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/*.[137]
	${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog)
if(files)
	execute_process(COMMAND gzip -9 -n ${files} COMMAND_ERROR_IS_FATAL ANY)
endif()
