! SPDX-License-Identifier: BSD-3-Clause
! examples/blocks.f90: blocks of a matrix are scaled and summed by tasks on two devices, from Fortran.
! Build: gfortran $(pkg-config --variable=fortran quadriga) blocks.f90 $(pkg-config --libs quadriga)
module variants
  use quadriga_tasks
  use, intrinsic :: iso_c_binding
  implicit none
contains

  function multiply(arguments) bind(C) result(status)
    type(quadriga_arguments), intent(in) :: arguments
    integer(c_int) :: status
    real(c_double), pointer :: block(:, :), factor
    call quadriga_operand(arguments, 1, block)
    call c_f_pointer(arguments%params, factor)
    block = block * factor
    status = 0
  end function

  function add_sum(arguments) bind(C) result(status)
    type(quadriga_arguments), intent(in) :: arguments
    integer(c_int) :: status
    real(c_double), pointer :: block(:, :), total(:, :)
    call quadriga_operand(arguments, 1, block)
    call quadriga_operand(arguments, 2, total)
    total(1, 1) = total(1, 1) + sum(block)
    status = 0
  end function

end module variants

program blocks_of_a_matrix
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use quadriga
  use quadriga_tasks
  use variants
  implicit none

  integer(c_int64_t), parameter :: rows = 300, cols = 40, blocks = 6
  real(c_double), target :: matrix(rows, cols*blocks), total = 0, factor = 3
  real(c_double) :: expected
  type(c_ptr) :: engine, scaling, summing, block, number
  integer(c_int64_t) :: i

  call random_number(matrix)
  expected = sum(matrix) * factor

  call check(quadriga_open("emulated:2", engine))
  call check(quadriga_codelet_create("multiply", [quadriga_update], multiply, scaling))
  call check(quadriga_codelet_create("add_sum", [quadriga_read, quadriga_commute], add_sum, summing))
  call check(quadriga_data_register(engine, c_loc(total), 1_c_int64_t, 1_c_int64_t, 1_c_int64_t, &
                                    'd', number))
  do i = 1, blocks
    call check(quadriga_data_register(engine, c_loc(matrix(1, 1 + (i - 1)*cols)), rows, cols, rows, &
                                      'd', block))
    call check(quadriga_submit(engine, scaling, [block], c_loc(factor), c_sizeof(factor)))
    call check(quadriga_submit(engine, summing, [block, number]))
    call check(quadriga_data_remove(block))
  end do
  call check(quadriga_wait_all(engine, -1.0_c_double))
  call check(quadriga_data_remove(number))
  call quadriga_close(engine)
  call quadriga_codelet_free(scaling)
  call quadriga_codelet_free(summing)

  print '(a, f10.3)', "sum", total
  if (abs(total - expected) > 1e-6_c_double) error stop "the sum is wrong"

contains

  subroutine check(info)
    integer(c_int64_t), intent(in) :: info
    if (info == 0) return
    write (error_unit, '(a, i0, 2a)') "info ", info, ": ", quadriga_message()
    error stop 1
  end subroutine

end program blocks_of_a_matrix
