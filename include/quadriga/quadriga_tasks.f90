! SPDX-License-Identifier: BSD-3-Clause
! include/quadriga/quadriga_tasks.f90: task_c.h and task_graph_c.h for Fortran; compile it with your program.
!
! A variant is a function with the interface `quadriga_variant`; `quadriga_operand` gives it its
! operands as arrays. Functions return 0, -i for the i-th argument of the function of C, or a
! parameter of module quadriga; quadriga_message() describes the failure.
module quadriga_tasks
  use, intrinsic :: iso_c_binding
  implicit none
  private

  ! How a task accesses an operand.
  integer(c_int), parameter, public :: quadriga_read = 0, quadriga_write = 1, quadriga_update = 2
  integer(c_int), parameter, public :: quadriga_commute = 3, quadriga_reduce = 4
  ! What a codelet needs.
  integer(c_int64_t), parameter, public :: quadriga_host_only = 1, quadriga_blocks = 2
  integer(c_int64_t), parameter, public :: quadriga_submits = 4

  type, bind(C), public :: quadriga_view
    type(c_ptr) :: data
    integer(c_int64_t) :: rows, cols, ld, type
  end type
  type, bind(C), public :: quadriga_arguments
    integer(c_int64_t) :: operands
    type(c_ptr) :: views, params
    integer(c_int64_t) :: params_bytes
    type(c_ptr) :: context, stream
  end type
  type, bind(C), public :: quadriga_task
    type(c_ptr) :: task = c_null_ptr
    integer(c_int64_t) :: id = 0
  end type
  !> `device` and `owner` are counted from 1; 0: the policy chooses.
  type, bind(C), public :: quadriga_submit_options
    integer(c_int64_t) :: priority = 0, device = 0, owner = 0
    type(c_ptr) :: sequence = c_null_ptr
    integer(c_int64_t) :: afters = 0
    type(c_ptr) :: after = c_null_ptr
  end type

  abstract interface
    !> Performs the operation; a result other than 0 fails the task.
    function quadriga_variant(arguments) bind(C) result(status)
      import
      type(quadriga_arguments), intent(in) :: arguments
      integer(c_int) :: status
    end function
    !> Sets the values of the index that follows `known` ones: from begin to before finish. indices(1)
    !> is the step, counted from 0.
    function quadriga_index_range(indices, known, context, begin, finish) bind(C) result(status)
      import
      integer(c_int64_t), intent(in) :: indices(*)
      integer(c_int64_t), value :: known
      type(c_ptr), value :: context
      integer(c_int64_t), intent(out) :: begin, finish
      integer(c_int) :: status
    end function
    !> Sets data(i) for each operand of the task of these indices, the bytes at `params`, which begin
    !> as zeros, and options.
    function quadriga_task_at(indices, count, context, data, params, options) bind(C) result(status)
      import
      integer(c_int64_t), intent(in) :: indices(*)
      integer(c_int64_t), value :: count
      type(c_ptr), value :: context, params
      type(c_ptr), intent(inout) :: data(*)
      type(quadriga_submit_options), intent(inout) :: options
      integer(c_int) :: status
    end function
    !> Other than 0 if no more tasks are wanted.
    function quadriga_stop(context) bind(C) result(stopped)
      import
      type(c_ptr), value :: context
      integer(c_int) :: stopped
    end function
  end interface

  !> call quadriga_operand(arguments, i, x): the i-th operand, counted from 1, as x(:, :).
  interface quadriga_operand
    module procedure operand_s, operand_d, operand_c, operand_z
  end interface

  public :: quadriga_variant, quadriga_operand
  public :: quadriga_index_range, quadriga_task_at, quadriga_stop
  public :: quadriga_task_graph_create, quadriga_task_graph_add, quadriga_task_graph_submit
  public :: quadriga_task_graph_free
  public :: quadriga_codelet_create, quadriga_codelet_reduce, quadriga_codelet_free
  public :: quadriga_data_register, quadriga_data_temporary, quadriga_data_wait
  public :: quadriga_data_remove, quadriga_on_host, quadriga_release
  public :: quadriga_sequence_create, quadriga_sequence_remove
  public :: quadriga_submit, quadriga_task_wait, quadriga_task_done
  public :: quadriga_wait_all, quadriga_cancel

  interface
    function create(name, operands, modes, cpu, cuda, context, needs, codelet) &
        bind(C, name="quadriga_codelet_create") result(info)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: operands, needs
      integer(c_int), intent(in) :: modes(*)
      type(c_funptr), value :: cpu, cuda
      type(c_ptr), value :: context
      type(c_ptr), intent(out) :: codelet
      integer(c_int64_t) :: info
    end function
    function quadriga_codelet_reduce(codelet, init, combine) bind(C) result(info)
      import
      type(c_ptr), value :: codelet, init, combine
      integer(c_int64_t) :: info
    end function
    subroutine quadriga_codelet_free(codelet) bind(C)
      import
      type(c_ptr), value :: codelet
    end subroutine
    !> `home` is the c_loc of an array with the target attribute, which must outlive the data.
    function quadriga_data_register(engine, home, rows, cols, ld, type, data) bind(C) result(info)
      import
      type(c_ptr), value :: engine, home
      integer(c_int64_t), value :: rows, cols, ld
      character(kind=c_char), value :: type
      type(c_ptr), intent(out) :: data
      integer(c_int64_t) :: info
    end function
    function quadriga_data_temporary(engine, rows, cols, type, data) bind(C) result(info)
      import
      type(c_ptr), value :: engine
      integer(c_int64_t), value :: rows, cols
      character(kind=c_char), value :: type
      type(c_ptr), intent(out) :: data
      integer(c_int64_t) :: info
    end function
    function quadriga_data_wait(data, timeout) bind(C) result(info)
      import
      type(c_ptr), value :: data
      real(c_double), value :: timeout
      integer(c_int64_t) :: info
    end function
    function quadriga_data_remove(data) bind(C) result(info)
      import
      type(c_ptr), value :: data
      integer(c_int64_t) :: info
    end function
    function quadriga_on_host(data, mode, timeout, access) bind(C) result(info)
      import
      type(c_ptr), value :: data
      integer(c_int), value :: mode
      real(c_double), value :: timeout
      type(c_ptr), intent(out) :: access
      integer(c_int64_t) :: info
    end function
    subroutine quadriga_release(access) bind(C)
      import
      type(c_ptr), value :: access
    end subroutine
    function quadriga_sequence_create(engine, sequence) bind(C) result(info)
      import
      type(c_ptr), value :: engine
      type(c_ptr), intent(out) :: sequence
      integer(c_int64_t) :: info
    end function
    function quadriga_sequence_remove(sequence) bind(C) result(info)
      import
      type(c_ptr), value :: sequence
      integer(c_int64_t) :: info
    end function
    function submit(engine, codelet, operands, data, params, params_bytes, options, task) &
        bind(C, name="quadriga_submit") result(info)
      import
      type(c_ptr), value :: engine, codelet, params
      integer(c_int64_t), value :: operands, params_bytes
      type(c_ptr), intent(in) :: data(*)
      type(quadriga_submit_options), intent(in) :: options
      type(quadriga_task), intent(out) :: task
      integer(c_int64_t) :: info
    end function
    function quadriga_task_wait(engine, task, timeout) bind(C) result(info)
      import
      type(c_ptr), value :: engine
      type(quadriga_task), intent(in) :: task
      real(c_double), value :: timeout
      integer(c_int64_t) :: info
    end function
    function quadriga_task_done(engine, task, done) bind(C) result(info)
      import
      type(c_ptr), value :: engine
      type(quadriga_task), intent(in) :: task
      integer(c_int), intent(out) :: done
      integer(c_int64_t) :: info
    end function
    function quadriga_task_graph_create(steps, graph) bind(C) result(info)
      import
      integer(c_int64_t), value :: steps
      type(c_ptr), intent(out) :: graph
      integer(c_int64_t) :: info
    end function
    function graph_add(graph, codelet, further_indices, range, task_at, params_bytes, context) &
        bind(C, name="quadriga_task_graph_add") result(info)
      import
      type(c_ptr), value :: graph, codelet, context
      integer(c_int64_t), value :: further_indices, params_bytes
      type(c_funptr), value :: range, task_at
      integer(c_int64_t) :: info
    end function
    function graph_submit(engine, graph, stop, stop_context, submitted) &
        bind(C, name="quadriga_task_graph_submit") result(info)
      import
      type(c_ptr), value :: engine, graph, stop_context
      type(c_funptr), value :: stop
      integer(c_int64_t), intent(out) :: submitted
      integer(c_int64_t) :: info
    end function
    subroutine quadriga_task_graph_free(graph) bind(C)
      import
      type(c_ptr), value :: graph
    end subroutine
    function quadriga_wait_all(engine, timeout) bind(C) result(info)
      import
      type(c_ptr), value :: engine
      real(c_double), value :: timeout
      integer(c_int64_t) :: info
    end function
    function quadriga_cancel(engine) bind(C) result(info)
      import
      type(c_ptr), value :: engine
      integer(c_int64_t) :: info
    end function
  end interface

contains

  !> An operation on operands with these modes, for cores and emulated devices; for NVIDIA GPUs the
  !> address of a function in CUDA's C.
  function quadriga_codelet_create(name, modes, cpu, codelet, cuda, context, needs) result(info)
    character(len=*), intent(in) :: name
    integer(c_int), intent(in) :: modes(:)
    procedure(quadriga_variant) :: cpu
    type(c_ptr), intent(out) :: codelet
    type(c_funptr), intent(in), optional :: cuda
    type(c_ptr), intent(in), optional :: context
    integer(c_int64_t), intent(in), optional :: needs
    integer(c_int64_t) :: info, all_needs
    type(c_funptr) :: on_cuda
    type(c_ptr) :: given
    on_cuda = c_null_funptr
    given = c_null_ptr
    all_needs = 0
    if (present(cuda)) on_cuda = cuda
    if (present(context)) given = context
    if (present(needs)) all_needs = needs
    info = create(trim(name) // c_null_char, size(modes, kind=c_int64_t), modes, c_funloc(cpu), &
                  on_cuda, given, all_needs, codelet)
  end function

  !> Submits a task on these data. `params` is the c_loc of `params_bytes` bytes, which are copied.
  function quadriga_submit(engine, codelet, data, params, params_bytes, options, task) result(info)
    type(c_ptr), intent(in) :: engine, codelet, data(:)
    type(c_ptr), intent(in), optional :: params
    integer(c_int64_t), intent(in), optional :: params_bytes
    type(quadriga_submit_options), intent(in), optional :: options
    type(quadriga_task), intent(out), optional :: task
    integer(c_int64_t) :: info, bytes
    type(c_ptr) :: given
    type(quadriga_submit_options) :: chosen
    type(quadriga_task) :: made
    given = c_null_ptr
    bytes = 0
    if (present(params)) given = params
    if (present(params_bytes)) bytes = params_bytes
    if (present(options)) chosen = options
    info = submit(engine, codelet, size(data, kind=c_int64_t), data, given, bytes, chosen, made)
    if (present(task)) task = made
  end function

  !> Adds tasks of one kind: one for each step and tuple of so many further indices. `params_bytes` is
  !> the size of a task's parameters.
  function quadriga_task_graph_add(graph, codelet, task_at, further_indices, range, params_bytes, &
                                   context) result(info)
    type(c_ptr), intent(in) :: graph, codelet
    procedure(quadriga_task_at) :: task_at
    integer, intent(in), optional :: further_indices
    procedure(quadriga_index_range), optional :: range
    integer(c_int64_t), intent(in), optional :: params_bytes
    type(c_ptr), intent(in), optional :: context
    integer(c_int64_t) :: info, further, bytes
    type(c_funptr) :: of_range
    type(c_ptr) :: given
    further = 0
    bytes = 0
    of_range = c_null_funptr
    given = c_null_ptr
    if (present(further_indices)) further = further_indices
    if (present(range)) of_range = c_funloc(range)
    if (present(params_bytes)) bytes = params_bytes
    if (present(context)) given = context
    info = graph_add(graph, codelet, further, of_range, c_funloc(task_at), bytes, given)
  end function

  !> Submits the tasks, all or until `stop`, which is asked before each, says so.
  function quadriga_task_graph_submit(engine, graph, stop, stop_context, submitted) result(info)
    type(c_ptr), intent(in) :: engine, graph
    procedure(quadriga_stop), optional :: stop
    type(c_ptr), intent(in), optional :: stop_context
    integer(c_int64_t), intent(out), optional :: submitted
    integer(c_int64_t) :: info, count
    type(c_funptr) :: asked
    type(c_ptr) :: given
    asked = c_null_funptr
    given = c_null_ptr
    if (present(stop)) asked = c_funloc(stop)
    if (present(stop_context)) given = stop_context
    info = graph_submit(engine, graph, asked, given, count)
    if (present(submitted)) submitted = count
  end function

  function view_of(arguments, i) result(view)
    type(quadriga_arguments), intent(in) :: arguments
    integer, intent(in) :: i
    type(quadriga_view) :: view
    type(quadriga_view), pointer :: views(:)
    call c_f_pointer(arguments%views, views, [arguments%operands])
    view = views(i)
  end function

  subroutine operand_s(arguments, i, x)
    type(quadriga_arguments), intent(in) :: arguments
    integer, intent(in) :: i
    real(c_float), pointer, intent(out) :: x(:, :)
    type(quadriga_view) :: view
    view = view_of(arguments, i)
    call c_f_pointer(view%data, x, [view%ld, view%cols])
    x => x(1:view%rows, :)
  end subroutine

  subroutine operand_d(arguments, i, x)
    type(quadriga_arguments), intent(in) :: arguments
    integer, intent(in) :: i
    real(c_double), pointer, intent(out) :: x(:, :)
    type(quadriga_view) :: view
    view = view_of(arguments, i)
    call c_f_pointer(view%data, x, [view%ld, view%cols])
    x => x(1:view%rows, :)
  end subroutine

  subroutine operand_c(arguments, i, x)
    type(quadriga_arguments), intent(in) :: arguments
    integer, intent(in) :: i
    complex(c_float_complex), pointer, intent(out) :: x(:, :)
    type(quadriga_view) :: view
    view = view_of(arguments, i)
    call c_f_pointer(view%data, x, [view%ld, view%cols])
    x => x(1:view%rows, :)
  end subroutine

  subroutine operand_z(arguments, i, x)
    type(quadriga_arguments), intent(in) :: arguments
    integer, intent(in) :: i
    complex(c_double_complex), pointer, intent(out) :: x(:, :)
    type(quadriga_view) :: view
    view = view_of(arguments, i)
    call c_f_pointer(view%data, x, [view%ld, view%cols])
    x => x(1:view%rows, :)
  end subroutine

end module quadriga_tasks
