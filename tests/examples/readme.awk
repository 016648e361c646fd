# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# A program in a page of Markdown: the first block of the language (c, cpp) that
# has a main().

$0 == "```" language { inside = 1; block = ""; next }
/^```$/ {
	if (inside && !done && block ~ /\nint main\(/) {
		printf "%s", block
		done = 1
	}
	inside = 0
}
inside { block = block $0 "\n" }
