# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Reads releases.txt: the functions of each release before 1.0, its version
# node, and the aliases that put them there again.

set(RPMA_OLD_RELEASES 0.9-rc1 0.9 0.10 0.11 0.12 0.13 0.14)
set(table ${CMAKE_CURRENT_LIST_DIR}/releases.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})

# RPMA_IN_<release>: its functions; RPMA_IN_0.9_AS_<function>: what is there
# instead; RPMA_HAS_<function>: it is still there
file(STRINGS ${table} lines REGEX "^rpma_")
set(order ${RPMA_OLD_RELEASES} 1.0 -)
foreach(line IN LISTS lines)
	string(REGEX REPLACE " +" ";" line "${line}")
	list(LENGTH line length)
	list(GET line 0 function)
	list(GET line 1 first)
	list(GET line 2 last)
	list(FIND order "${first}" begin)
	list(FIND order "${last}" end)
	if(begin EQUAL -1 OR end EQUAL -1 OR end LESS begin)
		message(FATAL_ERROR "${table}: ${line}")
	endif()
	foreach(release IN LISTS RPMA_OLD_RELEASES)
		list(FIND order ${release} now)
		if(now GREATER_EQUAL begin AND now LESS_EQUAL end)
			list(APPEND RPMA_IN_${release} ${function})
		endif()
	endforeach()
	if(length GREATER 3)
		list(GET line 3 RPMA_IN_0.9_AS_${function})
	endif()
	if(last STREQUAL "-")
		set(RPMA_HAS_${function} TRUE)
	endif()
endforeach()

# rpma_release_node(release variable): 1.0 took the name of 0.9's node again
function(rpma_release_node release variable)
	if(release MATCHES "^0\\.9")
		set(${variable} LIBRPMA_1.0 PARENT_SCOPE)
	else()
		set(${variable} LIBRPMA_${release} PARENT_SCOPE)
	endif()
endfunction()

# rpma_write_aliases(file): a linker script with every function of the old
# releases under its old node; what the map itself has in a node is left out
function(rpma_write_aliases file)
	set(aliases "")
	foreach(release IN LISTS RPMA_OLD_RELEASES)
		rpma_release_node(${release} node)
		foreach(function IN LISTS RPMA_IN_${release})
			set(target ${function})
			if(node STREQUAL "LIBRPMA_1.0")
				if(RPMA_HAS_${function})
					continue()
				endif()
				if(RPMA_IN_0.9_AS_${function})
					set(target ${RPMA_IN_0.9_AS_${function}})
				endif()
			endif()
			list(APPEND aliases
				"\"${function}@${node}\" = ${target}$<SEMICOLON>\n")
		endforeach()
	endforeach()
	list(REMOVE_DUPLICATES aliases)
	list(JOIN aliases "" aliases)
	file(GENERATE OUTPUT ${file} CONTENT "${aliases}")
endfunction()
