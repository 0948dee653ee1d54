package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time that the server has used, of all its threads and
// also in the kernel. Linux has a clock for that of any process, named by its
// id as clock_getcpuclockid(3) does; it counts nanoseconds, where /proc/PID/stat
// has ticks of 10 ms.
func (s *server) cpuTime() time.Duration {
	const ofProcess = 2 // CPUCLOCK_SCHED
	clock := int32(^s.command.Process.Pid<<3 | ofProcess)
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err) // the process is not reaped yet, so it has a clock
	}
	return time.Duration(t.Nano())
}

// ownCPUTime is that of this process, with what its clients do.
func ownCPUTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // every Linux has it
	}
	return time.Duration(t.Nano())
}
