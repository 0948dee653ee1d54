package nats

import "fmt"

// leastVersion is the first version of the server in which messages expire one by
// one.
const leastVersion = "2.11.0"

// checkVersion refuses servers that are too old. A version that cannot be read is
// taken to be new.
func checkVersion(version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d.", &major, &minor); err != nil {
		return nil //nolint:nilerr // See above.
	}
	if major < 2 || major == 2 && minor < 11 {
		return refusalf("the server is nats-server %s, which cannot let single keys expire; update it to %s or later", version, leastVersion)
	}
	return nil
}
