package etcd

import "testing"

func TestOutdatedVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"3.3.27": true, "3.4.37": true, "3.5.0": true, "3.5.23": true, "3.5.24": false, "3.5.100": false,
		"3.6.0-rc.1": true, "3.6.4": true, "3.6.5": false, "3.7.0": false, "3.7.3": false, "4.0.0": false,
		"2.3.8": true, "": false, "not provided": false,
	} {
		if got := outdated(version); got != want {
			t.Errorf("that %q is outdated is said to be %v", version, got)
		}
	}
}
