# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# A program in a page of Markdown: the first block of the language (c, cpp).

$0 == "```" language { inside = !done; next }
/^```$/ { done = done || inside; inside = 0 }
inside
