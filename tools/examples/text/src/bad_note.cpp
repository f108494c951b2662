// SPDX-License-Identifier: BSD-3-Clause
// src/bad_note.cpp: has a note to a later self.
// TODO: write it
