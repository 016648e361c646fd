# shellcheck shell=bash disable=SC2154 # of variables that "run" sets
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Sourced by "run": the packages of the host, and the cached image of the
# guest, which is a directory with kernel, initramfs, version and tsc_khz, a
# program of the host. An image is built aside under a lock and renamed into
# place, so that a reader sees all of it or nothing. Uses $here, $cache, $work
# and die() of the caller.

host_packages=(qemu-system-x86 cpio kmod iproute2 rdma-core ibverbs-providers
	ibverbs-utils rdmacm-utils xz-utils zstd gcc libc6-dev)
# The first that the package lists know. Both have rxe; why this order is in
# README.md.
kernel_packages=(linux-image-6.12-amd64 linux-image-amd64)

say_setup() {
	echo "tests/vm/run: first use: $*" >&2
}

# Runs a command whose output matters only if it fails.
quietly() {
	"$@" >"$work/setup.log" 2>&1 </dev/null && return
	tail -n 20 "$work/setup.log" >&2
	return 1
}

as_root() {
	if ((EUID == 0)); then
		"$@"
	else
		sudo -n "$@"
	fi
}

apt_get() {
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y -o DPkg::Lock::Timeout=600 "$@"
}

# apt waits for the lock of dpkg but not for that of the lists.
apt_update() {
	local i

	for ((i = 0; i < 60; i++)); do
		quietly apt_get update 2>"$work/update.err" && return
		grep -q 'Could not get lock' "$work/update.err" || break
		sleep 5
	done
	cat "$work/update.err" >&2
	return 1
}

# A machine may have no package lists, or lists that name versions long gone.
or_update() {
	quietly "$@" 2>"$work/first.err" && return
	apt_update && quietly "$@"
}

missing_packages() {
	local installed

	installed=$(dpkg-query -W -f '${db:Status-Abbrev}:${Package}\n' \
		"${host_packages[@]}" 2>/dev/null | sed -n 's/^.i.*://p')
	comm -23 <(printf '%s\n' "${host_packages[@]}" | sort) \
		<(sort <<<"$installed")
}

install_packages() {
	local -a missing

	mapfile -t missing < <(missing_packages)
	((${#missing[@]})) || return 0
	say_setup "installing ${missing[*]}"
	or_update apt_get install --no-install-recommends "${missing[@]}" ||
		die "cannot install ${missing[*]}"
}

# The package with the files: a name without version only depends on it.
kernel_package() { # name, the first known one of several
	local package found

	for package in "$@"; do
		found=$(apt-cache depends "$package" 2>/dev/null |
			sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' |
			head -n 1)
		[[ $found ]] || apt-cache show "$package" >/dev/null 2>&1 ||
			continue
		echo "${found:-$package}"
		return
	done
	return 1
}

# Prints the package of the kernel: the first choice, or, after an update of the
# package lists, the first choice that the lists know. The lists may be old or
# missing.
find_kernel_package() {
	kernel_package "${kernel_packages[0]}" && return
	apt_update
	kernel_package "${kernel_packages[@]}"
}

download() (
	cd "$work/packages" && apt-get -q download "$@"
)

# Debian 12 has files in /bin and /lib that Debian 13 has in /usr: with links
# from one to the other, as on a machine, both are found at either place.
unpack() {
	local deb

	mkdir -p "$work/packages" "$work"/tree/usr/{bin,lib}
	ln -s usr/bin usr/lib "$work/tree" || return
	or_update download "$@" || return
	for deb in "$work"/packages/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" |
			tar -x --keep-directory-symlink -C "$work/tree" ||
			return
	done
}

number_at() { # file offset size
	local n

	n=$(od -An -v -t "u$3" -j "$2" -N "$3" "$1")
	echo "${n// /}"
}

# Takes the ELF kernel out of a bzImage (its header gives sectors of set-up
# code, and offset and length of the payload, whose last four bytes are not
# of the stream). Started through its PVH entry it needs neither firmware nor
# decompression, which are slow where the processor is emulated.
extract_kernel() { # bzImage
	local sectors offset length tool

	sectors=$(number_at "$1" $((0x1f1)) 1)
	offset=$(number_at "$1" $((0x248)) 4)
	length=$(number_at "$1" $((0x24c)) 4)
	tail -c +$(((sectors + 1) * 512 + offset + 1)) "$1" |
		head -c $((length - 4)) >"$work/payload"
	case $(od -An -v -t x1 -N 4 "$work/payload") in
	' fd 37 7a 58') tool=xz ;;
	' 28 b5 2f fd') tool=zstd ;;
	' 1f 8b'*) tool=gzip ;;
	*) return 1 ;;
	esac
	"$tool" -q -dc <"$work/payload"
}

# Paths of the modules and all that they need, in the order of loading.
module_files() { # tree version list
	local module

	grep -v '^#' "$here/$3" | while read -r module; do
		PATH=$PATH:/usr/sbin:/sbin modprobe -d "$1" -S "$2" \
			--show-depends "$module" || exit
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

copy_modules() { # to, name of the list there; paths on stdin
	local file name

	while read -r file; do
		name=${file##*/}
		name=${name%.xz}
		case $file in
		*.xz) xz -dc "$file" >"$1/$name" ;;
		*) cp "$file" "$1/$name" ;;
		esac || return
		echo "$name" >>"$1/$2"
	done
}

make_initramfs() { # tree version
	local root=$work/initramfs applet

	mkdir -p "$root"/{bin,modules,proc,sys,dev,lower,upper,root} || return
	cp "$1/bin/busybox" "$root/bin" && cp "$here/init" "$here/guest" \
		"$root" || return
	for applet in sh mount insmod mkdir ln cp sleep switch_root; do
		ln -s busybox "$root/bin/$applet"
	done
	PATH=$PATH:/usr/sbin:/sbin depmod -b "$1" "$2" || return
	module_files "$1" "$2" modules >"$work/always" &&
		module_files "$1" "$2" modules.pmem >"$work/both" || return
	copy_modules "$root/modules" list <"$work/always" || return
	grep -v -x -F -f "$work/always" "$work/both" |
		copy_modules "$root/modules" list.pmem || return
	(cd "$root" && find . | cpio -o -H newc --quiet)
}

build_image() { # key
	local package version image=$work/image

	package=$(find_kernel_package) ||
		die "no package of ${kernel_packages[*]} is known to apt"
	version=${package#linux-image-}
	version=${version%-unsigned}
	say_setup "building the guest from $package in $cache"
	unpack "$package" busybox-static || die "cannot unpack $package"
	mkdir -p "$image"
	echo "$version" >"$image/version"
	extract_kernel "$work/tree/boot/vmlinuz-$version" >"$image/kernel" ||
		cp "$work/tree/boot/vmlinuz-$version" "$image/kernel" ||
		die "no kernel in $package"
	make_initramfs "$work/tree" "$version" >"$image/initramfs" ||
		die "cannot make the initramfs of $version"
	quietly gcc -O2 -o "$image/tsc_khz" "$here/tsc_khz.c" ||
		die "cannot compile tsc_khz.c"
	mv -T "$image" "$cache/$version-$1" ||
		die "cannot write to $cache"
	rm -rf "${work:?}"/{tree,packages,initramfs,payload}
}

find_image() { # key
	local dir found=

	for dir in "$cache"/*-"$1"; do
		[[ -f $dir/version ]] && found=$dir
	done
	[[ $found ]] && echo "$found"
}

# Prints the directory of the image of these sources, made if need be.
get_image() {
	local key

	key=$(cat "$here"/{init,guest,modules,modules.pmem,tsc_khz.c,image.sh} - \
		<<<"${kernel_packages[*]}" | sha256sum)
	key=${key:0:12}
	find_image "$key" && return
	(
		flock 9 || die "cannot lock $cache"
		find_image "$key" >/dev/null || build_image "$key"
	) 9>"$cache/lock" >&2 || return
	find_image "$key"
}
