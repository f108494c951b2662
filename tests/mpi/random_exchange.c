// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/random_exchange.c: random messages of random datatypes by all kinds of calls. Prints
// what each rank received, which must be the same with any MPI, with and without preloading, in
// memory of the host and of devices.
//
// usage: random_exchange SEED STEPS [kill|stop RANK MILLISECONDS]
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef COUNT  // See large_form.h.
#define COUNT int
#endif

extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));
extern void quadriga_emulated_copy(void*, const void*, size_t) __attribute__((weak));

enum { messages_of_step = 12, room = 400000, types = 8 };

static uint64_t state;
static int below(int limit) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int)((state >> 33) % (uint64_t)limit);
}

struct message {
  int from, to, type, receive_type, count, send_call, receive_call;
};

static MPI_Datatype type_of[types];
static int rank, size;

static void make_types(void) {
  COUNT lengths[3] = {2, 1, 3}, places[3] = {9, 0, 4};
  MPI_Aint bytes[2] = {-16, 24};
  COUNT fields[2] = {1, 3};
  MPI_Datatype of[2] = {MPI_DOUBLE, MPI_INT}, made;
  COUNT shape[2] = {6, 8}, part[2] = {3, 5}, start[2] = {2, 1};
  type_of[0] = MPI_DOUBLE;
  type_of[1] = MPI_BYTE;
  MPI_Type_vector(5, 2, 4, MPI_DOUBLE, &type_of[2]);
  MPI_Type_indexed(3, lengths, places, MPI_INT, &type_of[3]);
  MPI_Type_create_struct(2, fields, bytes, of, &made);
  MPI_Type_create_resized(made, -32, 80, &type_of[4]);
  MPI_Type_free(&made);
  MPI_Type_create_subarray(2, shape, part, start, MPI_ORDER_FORTRAN, MPI_FLOAT, &type_of[5]);
  MPI_Type_create_hvector(4, 1, -24, MPI_DOUBLE, &type_of[6]);
  MPI_Type_contiguous(3, MPI_DOUBLE_INT, &type_of[7]);
  for (int i = 2; i < types; ++i) MPI_Type_commit(&type_of[i]);
}

// The buffers of a rank, two of three on a device if there is one.
static unsigned char* place(int number) {
  const int device = quadriga_emulated_malloc != NULL && (number + rank) % 3 != 0;
  return device ? quadriga_emulated_malloc(2 * room) : malloc(2 * room);
}
static unsigned char here[2 * room];
static void copy(void* to, const void* of) {
  if (quadriga_emulated_copy != NULL)
    quadriga_emulated_copy(to, of, 2 * room);
  else
    memcpy(to, of, 2 * room);
}
static void clear(unsigned char* data) {
  memset(here, 0, sizeof here);
  copy(data, here);
}
static uint64_t digest(const unsigned char* data) {
  uint64_t sum = 1469598103934665603ULL;
  copy(here, data);
  for (size_t i = 0; i < sizeof here; ++i) sum = (sum ^ here[i]) * 1099511628211ULL;
  return sum;
}

static int isend(const void* at, const struct message* m, int tag, MPI_Request* request) {
  const MPI_Datatype type = type_of[m->type];
  switch (m->send_call) {
    case 0: return MPI_Issend(at, m->count, type, m->to, tag, MPI_COMM_WORLD, request);
    case 1:
      MPI_Send_init(at, m->count, type, m->to, tag, MPI_COMM_WORLD, request);
      return MPI_Start(request);
    default: return MPI_Isend(at, m->count, type, m->to, tag, MPI_COMM_WORLD, request);
  }
}

static int irecv(void* at, const struct message* m, int count, int tag, MPI_Request* request) {
  const MPI_Datatype type = type_of[m->receive_type];
  const int source = below(2) ? m->from : MPI_ANY_SOURCE;
  if (m->receive_call == 1) {
    MPI_Recv_init(at, count, type, source, tag, MPI_COMM_WORLD, request);
    return MPI_Start(request);
  }
  return MPI_Irecv(at, count, type, source, tag, MPI_COMM_WORLD, request);
}

static void recv(void* at, const struct message* m, int count, int tag, MPI_Status* status) {
  const MPI_Datatype type = type_of[m->receive_type];
  MPI_Message message;
  int flag = 0, elements = 0;
  switch (m->receive_call) {
    case 2:
      MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, status);
      MPI_Get_elements(status, MPI_BYTE, &elements);
      printf("%d: probed %d from %d\n", rank, elements, status->MPI_SOURCE);
      MPI_Recv(at, count, type, status->MPI_SOURCE, tag, MPI_COMM_WORLD, status);
      break;
    case 3:
      MPI_Mprobe(m->from, tag, MPI_COMM_WORLD, &message, status);
      MPI_Get_elements(status, MPI_BYTE, &elements);
      printf("%d: matched %d\n", rank, elements);
      MPI_Mrecv(at, count, type, &message, status);
      break;
    case 4:
      while (!flag) MPI_Iprobe(m->from, tag, MPI_COMM_WORLD, &flag, status);
      MPI_Recv(at, count, type, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, status);
      break;
    default: MPI_Recv(at, count, type, m->from, tag, MPI_COMM_WORLD, status);
  }
}

static void end_all(int how, int n, MPI_Request* requests, MPI_Status* statuses) {
  MPI_Status some[2 * messages_of_step];
  int indices[2 * messages_of_step], flag = 0;
  for (int left = n, index = 0, ended = 0; left > 0;) {
    switch (how) {
      case 0: MPI_Waitall(n, requests, statuses); return;
      case 1:
        MPI_Waitany(n, requests, &index, some);
        statuses[index] = some[0];
        --left;
        break;
      case 2:
      case 3:
        if (how == 2)
          MPI_Waitsome(n, requests, &ended, indices, some);
        else
          MPI_Testsome(n, requests, &ended, indices, some);
        for (int i = 0; i < ended; ++i) statuses[indices[i]] = some[i];
        left -= ended;
        break;
      case 4:
        while (!flag) MPI_Testall(n, requests, &flag, statuses);
        return;
      default:
        --left;
        for (flag = 0; !flag;) MPI_Test(&requests[left], &flag, &statuses[left]);
    }
  }
}

static void die(int number) {
  (void)number;
  kill(getpid(), SIGKILL);
}

// Wherever this process is then: it is killed, or stopped for a while.
static void interrupt_after(const char* how, int milliseconds) {
  if (strcmp(how, "kill") == 0) {
    const struct itimerval once = {{0, 0}, {milliseconds / 1000, milliseconds % 1000 * 1000}};
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &once, NULL);
    return;
  }
  const pid_t parent = getpid();
  if (fork() != 0) return;
  usleep(milliseconds * 1000u);
  kill(parent, SIGSTOP);
  usleep(200000);
  kill(parent, SIGCONT);
  _exit(0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  state = strtoull(argv[1], NULL, 10);
  make_types();
  if (argc > 5 && rank == atoi(argv[4])) interrupt_after(argv[3], 1 + atoi(argv[5]));
  unsigned char *in[messages_of_step], *out[messages_of_step];
  for (int i = 0; i < messages_of_step; ++i) {
    in[i] = place(i);
    out[i] = place(i + i / 3);
    for (int j = 0; j < 2 * room; ++j) here[j] = (unsigned char)(j * 7 + i + rank * 3);
    copy(out[i], here);
  }
  for (int step = 0; step < atoi(argv[2]); ++step) {
    struct message all[messages_of_step];
    MPI_Request requests[2 * messages_of_step];
    MPI_Status statuses[2 * messages_of_step];
    int of[2 * messages_of_step], n = 0, persistent[2 * messages_of_step] = {0};
    for (int i = 0; i < messages_of_step; ++i) {
      struct message* const m = &all[i];
      const int most = below(3) ? 40 : 1200;
      *m = (struct message){below(size), below(size), below(types), 0, below(most), below(5), below(6)};
      m->receive_type = below(3) ? m->type : 1;
    }
    // The other ranks' choices below don't matter to this one.
    const uint64_t common = state;
    const int how = below(6);
    for (int i = 0; i < messages_of_step; ++i) {
      const struct message* const m = &all[i];
      if (m->to != rank || m->receive_call > 1) continue;
      clear(in[i]);
      int bytes = 0;
      MPI_Type_size(type_of[m->type], &bytes);
      const int count = m->receive_type == m->type ? m->count : m->count * bytes;
      persistent[n] = m->receive_call == 1;
      of[n] = i;
      irecv(in[i] + room, m, count, step * messages_of_step + i, &requests[n++]);
    }
    for (int i = 0; i < messages_of_step; ++i) {
      if (all[i].from != rank) continue;
      persistent[n] = all[i].send_call == 1;
      of[n] = -1;
      isend(out[i] + room, &all[i], step * messages_of_step + i, &requests[n++]);
    }
    for (int i = 0; i < messages_of_step; ++i) {
      const struct message* const m = &all[i];
      if (m->to != rank || m->receive_call <= 1) continue;
      clear(in[i]);
      int bytes = 0, got = 0;
      MPI_Type_size(type_of[m->type], &bytes);
      MPI_Status status;
      recv(in[i] + room, m, m->receive_type == m->type ? m->count : m->count * bytes,
           step * messages_of_step + i, &status);
      MPI_Get_count(&status, type_of[m->receive_type], &got);
      printf("%d: %d %d received %d from %d: %llx\n", rank, step, i, got, status.MPI_SOURCE,
             (unsigned long long)digest(in[i]));
    }
    MPI_Request kept[2 * messages_of_step];
    memcpy(kept, requests, sizeof kept);
    end_all(how, n, requests, statuses);
    for (int k = 0; k < n; ++k) {
      if (persistent[k]) MPI_Request_free(&kept[k]);
      if (of[k] < 0) continue;
      int got = 0;
      MPI_Get_count(&statuses[k], type_of[all[of[k]].receive_type], &got);
      printf("%d: %d %d received %d from %d: %llx\n", rank, step, of[k], got,
             statuses[k].MPI_SOURCE, (unsigned long long)digest(in[of[k]]));
    }
    state = common;
    if (below(3) == 0) MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 2; i < types; ++i) MPI_Type_free(&type_of[i]);
  MPI_Finalize();
  return 0;
}
