# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Read by scripts that fill a folder for another machine: programs, each behind
# the linker and the libraries of this machine, because the C library of the
# other machine may be older. On the other machine nothing is installed.

# pack_libraries DIR FILE: copies the libraries of a program or library to DIR/lib
pack_libraries()
{
	local lib

	mkdir -p "$1/lib"
	for lib in $(ldd "$2" | grep -o '/[^ ]*'); do
		case $lib in
		*/ld-linux*) lib=$lib:$1/lib/ld.so ;;
		*) lib=$lib:$1/lib/${lib##*/} ;;
		esac
		[[ -e ${lib#*:} ]] || cp -L "${lib%%:*}" "${lib#*:}"
	done
}

# pack_program DIR FOLDER FILE: DIR/FOLDER/NAME runs the program FILE
pack_program()
{
	local name=${3##*/} up=${2//[^\/]/}

	pack_libraries "$1" "$3"
	cp "$3" "$1/lib/$name"
	up=${up//\//../}
	mkdir -p "$1/$2"
	cat >"$1/$2/$name" <<-END
	#!/bin/sh
	lib=\$(dirname "\$(readlink -f "\$0")")/../${up}lib
	exec "\$lib/ld.so" --library-path "\$lib" "\$lib/$name" "\$@"
	END
	chmod +x "$1/$2/$name"
}
