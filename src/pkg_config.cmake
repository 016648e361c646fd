# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# What pkg-config reads. For /usr with plain paths: pkg-config knows those for
# the compiler's own and leaves them out. For any other prefix relative to where
# the file lies, so that the prefix may be moved. Which of the two it is shows
# at the installation, where a prefix may be given too.

# rpma_install_pc(name): installs name.pc of name.pc.in
function(rpma_install_pc name)
	set(to ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
	set(made ${CMAKE_CURRENT_BINARY_DIR})
	file(RELATIVE_PATH up /prefix/${to} /prefix)
	set(PC_PREFIX "\${pcfiledir}/${up}")
	configure_file(${name}.pc.in ${made}/pc/any/${name}.pc @ONLY)
	set(PC_PREFIX /usr)
	configure_file(${name}.pc.in ${made}/pc/usr/${name}.pc @ONLY)
	install(CODE "
		set(of any)
		if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
			set(of usr)
		endif()
		file(INSTALL \"${made}/pc/\${of}/${name}.pc\"
			DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${to}\")"
		COMPONENT dev)
endfunction()
