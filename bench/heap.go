package main

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
)

// memory is what a server has in use after a garbage collection.
type memory struct {
	heap, stacks int64 // bytes
	goroutines   int64
}

// collections is how many garbage collections come before memory is measured.
// Pools keep what they have over one and stacks shrink by half in each, so one
// is not enough.
const collections = 4

var (
	heapAlloc  = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)
	stackInuse = regexp.MustCompile(`(?m)^# Stack = (\d+) /`)
	goroutines = regexp.MustCompile(`^goroutine profile: total (\d+)\n`)
)

// memory collects the server's garbage and measures.
func (s *server) memory(ctx context.Context) (memory, error) {
	var m memory
	var heap string
	for range collections { // it reads the numbers after the last one
		var err error
		if heap, err = s.debug(ctx, "heap?gc=1&debug=1"); err != nil {
			return m, err
		}
	}
	routines, err := s.debug(ctx, "goroutine?debug=1")
	if err != nil {
		return m, err
	}
	for _, number := range []struct {
		into    *int64
		pattern *regexp.Regexp
		text    string
	}{{&m.heap, heapAlloc, heap}, {&m.stacks, stackInuse, heap}, {&m.goroutines, goroutines, routines}} {
		found := number.pattern.FindStringSubmatch(number.text)
		if found == nil {
			return m, fmt.Errorf("the profile has no %v", number.pattern)
		}
		if *number.into, err = strconv.ParseInt(found[1], 10, 64); err != nil {
			return m, err
		}
	}
	return m, nil
}

// ownMemory is that of this process.
func ownMemory() memory {
	for range collections {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{int64(m.HeapAlloc), int64(m.StackInuse), int64(runtime.NumGoroutine())}
}

func (m memory) minus(other memory) memory {
	return memory{m.heap - other.heap, m.stacks - other.stacks, m.goroutines - other.goroutines}
}
