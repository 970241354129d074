# SPDX-License-Identifier: BSD-3-Clause
# Lines as C strings.
s/.*/"&\\n"/
