package integration_test

import "testing"

// Those of the tests of gateways that take the engine through a cluster of gateways
// which are the store. The others are about stores elsewhere, or as good there.

func TestEmbeddedGatewayKilledUnderLoad(t *testing.T) { onEmbedded(t, testGatewayKilledUnderLoad) }
func TestEmbeddedOrderAcrossGateways(t *testing.T)    { onEmbedded(t, testOrderAcrossGateways) }
func TestEmbeddedOrderWithoutThoseWhoLeft(t *testing.T) {
	onEmbedded(t, testOrderWithoutThoseWhoLeft)
}
func TestEmbeddedHolderChangesGateways(t *testing.T) { onEmbedded(t, testHolderChangesGateways) }
func TestEmbeddedRenewalsThroughAnyGatewayKeepTheSlot(t *testing.T) {
	onEmbedded(t, testRenewalsThroughAnyGatewayKeepTheSlot)
}
