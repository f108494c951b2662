// SPDX-License-Identifier: BSD-3-Clause
// bad_layout.cpp: laid out by nobody.
int   bad( ){return 1 ;}
