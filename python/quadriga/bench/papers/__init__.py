# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/papers/__init__.py: experiments of other systems' papers, redone.
"""`quadriga bench papers`: experiments of other systems' papers, redone by the virtual clock."""
