# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# The program in a manual page: the first literal block of its EXAMPLES.

/^\.Sh/ { examples = $2 == "EXAMPLES" }
/^\.Ed/ { done = done || inside; inside = 0 }
inside { gsub(/\\e/, "\\"); print }
/^\.Bd -literal/ { inside = examples && !done }
