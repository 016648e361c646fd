# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# A program in a page of Markdown: the first block of the language (c, cpp) that
# has the words, or a main().

BEGIN { words = words == "" ? "\nint main(" : words }

$0 == "```" language { inside = 1; block = ""; next }
/^```$/ {
	if (inside && !done && index(block, words)) {
		printf "%s", block
		done = 1
	}
	inside = 0
}
inside { block = block $0 "\n" }
