! SPDX-License-Identifier: BSD-3-Clause
! include/quadriga/quadriga.f90: the routines of quadriga.h for Fortran; compile it with your program.
!
! Arguments are those of BLAS and LAPACK with an engine in front and 64-bit sizes; results are info.
module quadriga
  use, intrinsic :: iso_c_binding
  implicit none
  private

  integer(c_int64_t), parameter, public :: quadriga_too_large = -1001
  integer(c_int64_t), parameter, public :: quadriga_task_failed = -1002
  integer(c_int64_t), parameter, public :: quadriga_device_lost = -1003
  integer(c_int64_t), parameter, public :: quadriga_unavailable = -1004
  integer(c_int64_t), parameter, public :: quadriga_other = -1005

  public :: quadriga_open, quadriga_close, quadriga_message
  public :: quadriga_sgemm, quadriga_dgemm, quadriga_cgemm, quadriga_zgemm
  public :: quadriga_ssyrk, quadriga_dsyrk, quadriga_csyrk, quadriga_zsyrk
  public :: quadriga_cherk, quadriga_zherk
  public :: quadriga_spotrf, quadriga_dpotrf, quadriga_cpotrf, quadriga_zpotrf
  public :: quadriga_spotrs, quadriga_dpotrs, quadriga_cpotrs, quadriga_zpotrs
  public :: quadriga_sposv, quadriga_dposv, quadriga_cposv, quadriga_zposv
  public :: quadriga_strtrs, quadriga_dtrtrs, quadriga_ctrtrs, quadriga_ztrtrs

  ! Elements have the type that the routine's letter says.
  abstract interface
    function gemm(engine, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) &
        bind(C) result(info)
      import
      type(c_ptr), value :: engine
      character(kind=c_char), value :: transa, transb
      integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
      type(*), intent(in) :: alpha, a(*), b(*), beta
      type(*) :: c(*)
      integer(c_int64_t) :: info
    end function
    function syrk(engine, uplo, trans, n, k, alpha, a, lda, beta, c, ldc) bind(C) result(info)
      import
      type(c_ptr), value :: engine
      character(kind=c_char), value :: uplo, trans
      integer(c_int64_t), value :: n, k, lda, ldc
      type(*), intent(in) :: alpha, a(*), beta
      type(*) :: c(*)
      integer(c_int64_t) :: info
    end function
    function potrf(engine, uplo, n, a, lda) bind(C) result(info)
      import
      type(c_ptr), value :: engine
      character(kind=c_char), value :: uplo
      integer(c_int64_t), value :: n, lda
      type(*) :: a(*)
      integer(c_int64_t) :: info
    end function
    ! Also posv, which writes to a.
    function potrs(engine, uplo, n, nrhs, a, lda, b, ldb) bind(C) result(info)
      import
      type(c_ptr), value :: engine
      character(kind=c_char), value :: uplo
      integer(c_int64_t), value :: n, nrhs, lda, ldb
      type(*) :: a(*), b(*)
      integer(c_int64_t) :: info
    end function
    function trtrs(engine, uplo, trans, diag, n, nrhs, a, lda, b, ldb) bind(C) result(info)
      import
      type(c_ptr), value :: engine
      character(kind=c_char), value :: uplo, trans, diag
      integer(c_int64_t), value :: n, nrhs, lda, ldb
      type(*), intent(in) :: a(*)
      type(*) :: b(*)
      integer(c_int64_t) :: info
    end function
  end interface

  procedure(gemm), bind(C, name="quadriga_sgemm") :: quadriga_sgemm
  procedure(gemm), bind(C, name="quadriga_dgemm") :: quadriga_dgemm
  procedure(gemm), bind(C, name="quadriga_cgemm") :: quadriga_cgemm
  procedure(gemm), bind(C, name="quadriga_zgemm") :: quadriga_zgemm
  procedure(syrk), bind(C, name="quadriga_ssyrk") :: quadriga_ssyrk
  procedure(syrk), bind(C, name="quadriga_dsyrk") :: quadriga_dsyrk
  procedure(syrk), bind(C, name="quadriga_csyrk") :: quadriga_csyrk
  procedure(syrk), bind(C, name="quadriga_zsyrk") :: quadriga_zsyrk
  procedure(potrf), bind(C, name="quadriga_spotrf") :: quadriga_spotrf
  procedure(potrf), bind(C, name="quadriga_dpotrf") :: quadriga_dpotrf
  procedure(potrf), bind(C, name="quadriga_cpotrf") :: quadriga_cpotrf
  procedure(potrf), bind(C, name="quadriga_zpotrf") :: quadriga_zpotrf
  procedure(potrs), bind(C, name="quadriga_spotrs") :: quadriga_spotrs
  procedure(potrs), bind(C, name="quadriga_dpotrs") :: quadriga_dpotrs
  procedure(potrs), bind(C, name="quadriga_cpotrs") :: quadriga_cpotrs
  procedure(potrs), bind(C, name="quadriga_zpotrs") :: quadriga_zpotrs
  procedure(potrs), bind(C, name="quadriga_sposv") :: quadriga_sposv
  procedure(potrs), bind(C, name="quadriga_dposv") :: quadriga_dposv
  procedure(potrs), bind(C, name="quadriga_cposv") :: quadriga_cposv
  procedure(potrs), bind(C, name="quadriga_zposv") :: quadriga_zposv
  procedure(trtrs), bind(C, name="quadriga_strtrs") :: quadriga_strtrs
  procedure(trtrs), bind(C, name="quadriga_dtrtrs") :: quadriga_dtrtrs
  procedure(trtrs), bind(C, name="quadriga_ctrtrs") :: quadriga_ctrtrs
  procedure(trtrs), bind(C, name="quadriga_ztrtrs") :: quadriga_ztrtrs

  interface
    function quadriga_cherk(engine, uplo, trans, n, k, alpha, a, lda, beta, c, ldc) &
        bind(C) result(info)
      import
      type(c_ptr), value :: engine
      character(kind=c_char), value :: uplo, trans
      integer(c_int64_t), value :: n, k, lda, ldc
      real(c_float), value :: alpha, beta
      complex(c_float_complex), intent(in) :: a(*)
      complex(c_float_complex), intent(inout) :: c(*)
      integer(c_int64_t) :: info
    end function
    function quadriga_zherk(engine, uplo, trans, n, k, alpha, a, lda, beta, c, ldc) &
        bind(C) result(info)
      import
      type(c_ptr), value :: engine
      character(kind=c_char), value :: uplo, trans
      integer(c_int64_t), value :: n, k, lda, ldc
      real(c_double), value :: alpha, beta
      complex(c_double_complex), intent(in) :: a(*)
      complex(c_double_complex), intent(inout) :: c(*)
      integer(c_int64_t) :: info
    end function
    subroutine quadriga_close(engine) bind(C)
      import
      type(c_ptr), value :: engine
    end subroutine
    function open_engine(devices, engine) bind(C, name="quadriga_open") result(info)
      import
      character(kind=c_char), intent(in) :: devices(*)
      type(c_ptr), intent(out) :: engine
      integer(c_int64_t) :: info
    end function
    function message_address() bind(C, name="quadriga_message") result(address)
      import
      type(c_ptr) :: address
    end function
    function length_of(address) bind(C, name="strlen") result(length)
      import
      type(c_ptr), value :: address
      integer(c_size_t) :: length
    end function
  end interface

contains

  !> Starts an engine on devices such as "cpu" or "emulated:2,memory=64MiB"; "": as configured.
  function quadriga_open(devices, engine) result(info)
    character(len=*), intent(in) :: devices
    type(c_ptr), intent(out) :: engine
    integer(c_int64_t) :: info
    info = open_engine(trim(devices) // c_null_char, engine)
  end function

  !> What went wrong in this thread's last call that failed.
  function quadriga_message() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: address
    integer :: i
    address = message_address()
    call c_f_pointer(address, letters, [length_of(address)])
    allocate(character(len=size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

end module quadriga
