# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# The program in README.md: its first block of C.

/^```c$/ { inside = !done; next }
/^```$/ { done = done || inside; inside = 0 }
inside
