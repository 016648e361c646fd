# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# A program in README.md: its first block of the language (c, cpp).

$0 == "```" language { inside = !done; next }
/^```$/ { done = done || inside; inside = 0 }
inside
