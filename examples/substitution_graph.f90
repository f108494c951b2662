! SPDX-License-Identifier: BSD-3-Clause
! examples/substitution_graph.f90: L x = b by blocks, from Fortran, as a graph of block columns and rows.
! Build: gfortran $(pkg-config --variable=fortran quadriga) substitution_graph.f90 $(pkg-config --libs quadriga)
module blocks_of_l
  use quadriga_tasks
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int64_t), parameter :: block = 16, blocks = 6
  type(c_ptr) :: l(blocks, blocks), x(blocks)  ! Data of the lower blocks, and of the solution's.
contains

  !> Solves with a diagonal block.
  function solve(arguments) bind(C) result(status)
    type(quadriga_arguments), intent(in) :: arguments
    integer(c_int) :: status
    real(c_double), pointer :: a(:, :), b(:, :)
    integer :: i
    call quadriga_operand(arguments, 1, a)
    call quadriga_operand(arguments, 2, b)
    do i = 1, size(b, 1)
      b(i, 1) = (b(i, 1) - dot_product(a(i, 1:i - 1), b(1:i - 1, 1))) / a(i, i)
    end do
    status = 0
  end function

  function subtract(arguments) bind(C) result(status)
    type(quadriga_arguments), intent(in) :: arguments
    integer(c_int) :: status
    real(c_double), pointer :: a(:, :), known(:, :), b(:, :)
    call quadriga_operand(arguments, 1, a)
    call quadriga_operand(arguments, 2, known)
    call quadriga_operand(arguments, 3, b)
    b = b - matmul(a, known)
    status = 0
  end function

  function solve_at(indices, count, context, data, params, options) bind(C) result(status)
    integer(c_int64_t), intent(in) :: indices(*)
    integer(c_int64_t), value :: count
    type(c_ptr), value :: context, params
    type(c_ptr), intent(inout) :: data(*)
    type(quadriga_submit_options), intent(inout) :: options
    integer(c_int) :: status
    integer(c_int64_t) :: k
    k = indices(1) + 1
    data(1) = l(k, k)
    data(2) = x(k)
    options%priority = 1
    status = 0
  end function

  !> The rows below the block column.
  function below(indices, known, context, begin, finish) bind(C) result(status)
    integer(c_int64_t), intent(in) :: indices(*)
    integer(c_int64_t), value :: known
    type(c_ptr), value :: context
    integer(c_int64_t), intent(out) :: begin, finish
    integer(c_int) :: status
    begin = indices(1) + 1
    finish = blocks
    status = 0
  end function

  function subtract_at(indices, count, context, data, params, options) bind(C) result(status)
    integer(c_int64_t), intent(in) :: indices(*)
    integer(c_int64_t), value :: count
    type(c_ptr), value :: context, params
    type(c_ptr), intent(inout) :: data(*)
    type(quadriga_submit_options), intent(inout) :: options
    integer(c_int) :: status
    data(1) = l(indices(2) + 1, indices(1) + 1)
    data(2) = x(indices(1) + 1)
    data(3) = x(indices(2) + 1)
    status = 0
  end function

end module blocks_of_l

program substitution
  use, intrinsic :: iso_fortran_env, only: error_unit
  use quadriga
  use blocks_of_l
  implicit none

  integer(c_int64_t), parameter :: order = block*blocks
  real(c_double), target :: matrix(order, order), solution(order)
  real(c_double) :: right(order)
  type(c_ptr) :: engine, solving, subtracting, graph
  integer(c_int64_t) :: i, j, submitted

  call random_number(matrix)
  call random_number(right)
  do i = 1, order
    matrix(i, i) = matrix(i, i) + order
    matrix(i, i + 1:) = 0
  end do
  solution = right

  call check(quadriga_open("emulated:2", engine))
  call check(quadriga_codelet_create("solve", [quadriga_read, quadriga_update], solve, solving))
  call check(quadriga_codelet_create("subtract", [quadriga_read, quadriga_read, quadriga_update], &
                                     subtract, subtracting))
  do j = 1, blocks
    call check(quadriga_data_register(engine, c_loc(solution(1 + (j - 1)*block)), block, &
                                      1_c_int64_t, block, 'd', x(j)))
    do i = j, blocks
      call check(quadriga_data_register(engine, c_loc(matrix(1 + (i - 1)*block, 1 + (j - 1)*block)), &
                                        block, block, order, 'd', l(i, j)))
    end do
  end do
  call check(quadriga_task_graph_create(blocks, graph))
  call check(quadriga_task_graph_add(graph, solving, solve_at))
  call check(quadriga_task_graph_add(graph, subtracting, subtract_at, 1, below))
  call check(quadriga_task_graph_submit(engine, graph, submitted=submitted))
  call check(quadriga_wait_all(engine, -1.0_c_double))
  call quadriga_task_graph_free(graph)
  do j = 1, blocks
    call check(quadriga_data_remove(x(j)))
    do i = j, blocks
      call check(quadriga_data_remove(l(i, j)))
    end do
  end do
  call quadriga_close(engine)
  call quadriga_codelet_free(solving)
  call quadriga_codelet_free(subtracting)

  print '(i0, a, es8.1)', submitted, " tasks, residual", maxval(abs(matmul(matrix, solution) - right))
  if (submitted /= blocks*(blocks + 1)/2) error stop "tasks are missing"
  if (maxval(abs(matmul(matrix, solution) - right)) > 1e-12_c_double) error stop "the solution is wrong"

contains

  subroutine check(info)
    integer(c_int64_t), intent(in) :: info
    if (info == 0) return
    write (error_unit, '(a, i0, 2a)') "info ", info, ": ", quadriga_message()
    error stop 1
  end subroutine

end program substitution
