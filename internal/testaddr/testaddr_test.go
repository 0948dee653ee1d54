package testaddr

import (
	"net"
	"testing"
)

func TestFreeIsFreeAndNeverTheSame(t *testing.T) {
	seen := make(map[string]bool)
	for range 50 {
		address := Free(t)
		if seen[address] {
			t.Fatalf("%s was handed out twice", address)
		}
		seen[address] = true
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
	}
}
