package main

import (
	"fmt"
	"syscall"
)

// raiseOpenFiles makes room for n connections in this process and in the
// servers that it starts, as far as the system lets it. It returns how many
// there is room for, which may be fewer.
func raiseOpenFiles(n int) (int, error) {
	const others = 200 // files that are none of the connections; a server has some 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("reading the limit of open files: %w", err)
	}
	want := uint64(n + others)
	if limit.Max < want {
		// Only some may raise the hard limit.
		higher := syscall.Rlimit{Cur: want, Max: want}
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &higher) == nil {
			return n, nil
		}
	}
	// Set also if it is that already: children get what was set, while the
	// increase that Go makes when it starts is not passed on.
	limit.Cur = min(want, limit.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("raising the limit of open files: %w", err)
	}
	return int(limit.Cur) - others, nil
}
