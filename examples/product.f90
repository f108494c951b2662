! SPDX-License-Identifier: BSD-3-Clause
! examples/product.f90: a product of matrices from Fortran, on two devices that hold part of them.
! Build: gfortran $(pkg-config --variable=fortran quadriga) product.f90 $(pkg-config --libs quadriga)
program product
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use quadriga
  implicit none

  integer(c_int64_t), parameter :: m = 700, n = 600, k = 500
  complex(c_double_complex), parameter :: one = (1, 0), none = (0, 0)
  complex(c_double_complex) :: a(m, k), b(k, n), c(m, n)
  real(c_double) :: parts(m, k, 2), others(k, n, 2), error
  integer(c_int64_t) :: info
  type(c_ptr) :: engine

  call random_number(parts)
  call random_number(others)
  a = cmplx(parts(:, :, 1), parts(:, :, 2), c_double)
  b = cmplx(others(:, :, 1), others(:, :, 2), c_double)

  info = quadriga_open("emulated:2,memory=4MiB", engine)
  if (info == 0) info = quadriga_zgemm(engine, 'N', 'N', m, n, k, one, a, m, b, k, none, c, m)
  if (info /= 0) then
    write (error_unit, '(a, i0, 2a)') "info ", info, ": ", quadriga_message()
    error stop 1
  end if
  call quadriga_close(engine)

  error = maxval(abs(c - matmul(a, b)))
  print '(a, es8.1)', "difference from matmul", error
  if (error > 1e-10_c_double) error stop "the product is wrong"
end program product
