# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Read by tests that need another Debian than the one they run on: a root of
# packages, which debootstrap makes once and which is kept in the cache of the
# user; a test enters it in a mount namespace of its own.

root_tests=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
roots=${XDG_CACHE_HOME:-$HOME/.cache}/rpma/vm
PATH=$PATH:/usr/sbin:/sbin

# root_skip WORDS: the test cannot run here
root_skip()
{
	echo "skipped: $*"
	exit 77
}

# root_make SUITE DIR PACKAGES: aside, and renamed, so that one is whole or is
# not there. In a shell of its own: what it traps is its own.
root_make()
(
	command -v debootstrap >/dev/null ||
		exec "$root_tests/missing" debootstrap debootstrap
	echo "first use: making a root of Debian $1 in $roots"
	aside=$(mktemp -d "$roots/$1.XXXXXX")
	trap 'rm -rf --one-file-system "$aside"' EXIT
	debootstrap --variant=minbase --include="$3" "$1" "$aside/root" \
		>"$aside/log" 2>&1 || {
		tail -n 5 "$aside/log"
		tail -n 5 "$aside/root/debootstrap/debootstrap.log" 2>/dev/null
		root_skip "debootstrap cannot make a root of Debian $1, see above"
	}
	mkdir "$aside"/root/mnt/{source,build}
	rm -f "$aside"/root/var/cache/apt/archives/*.deb
	mv -T "$aside/root" "$2"
)

# root_get SUITE PACKAGES: $root is one that has them, commas between them
root_get()
{
	local key

	((EUID == 0)) || root_skip "only root can make a root of Debian and enter it"
	unshare --mount --net true 2>/dev/null ||
		root_skip "no namespaces here, which a root of Debian needs"
	mkdir -p "$roots"
	key=$(echo "$2" | sha256sum)
	root=$roots/$1-${key:0:12}
	exec 9>"$roots/$1.lock"
	flock 9
	[[ -d $root ]] || root_make "$1" "$root" "$2"
	exec 9>&-
}

# root_enter ROOT SOURCE BUILD: what the host has that the root needs; the
# source is at /mnt/source and the build at /mnt/build. In a mount namespace.
root_enter()
{
	local dir

	root=$1
	for dir in proc sys dev; do
		mount --rbind "/$dir" "$root/$dir"
	done
	mount --bind "$2" "$root/mnt/source"
	mount --bind "$3" "$root/mnt/build"
}

# in_root COMMAND...
in_root()
{
	chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
		PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
