package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockgateway/lockgateway/backends/memory"
	"github.com/lockgateway/lockgateway/lock"
	"github.com/lockgateway/lockgateway/lock/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	locktest.Run(t, func(*testing.T) lock.Backend { return memory.New(memory.Options{}) })
	locktest.RunInspector(t, func(*testing.T) locktest.Inspected { return memory.New(memory.Options{}) })
}
