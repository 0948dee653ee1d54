package integration_test

import (
	"testing"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }
