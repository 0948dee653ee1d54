package nats

import (
	"errors"
	"testing"
)

func TestOldServersAreRefused(t *testing.T) {
	for version, old := range map[string]bool{
		"1.4.1": true, "2.2.0": true, "2.10.29": true, "2.11.0": false, "2.11.0-preview.1": false, "2.12.3": false, "2.15.3": false, "3.0.0": false,
		"": false, "dev": false,
	} {
		err := checkVersion(version)
		var refusal *refusalError
		if errors.As(err, &refusal) != old {
			t.Errorf("version %q gave the error %v", version, err)
		}
	}
}
