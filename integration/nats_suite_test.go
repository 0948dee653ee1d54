package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
)

// natsCluster is NATS as a cluster.
type natsCluster struct{ *natstest.Cluster }

func startNATS(t *testing.T, n int) cluster {
	t.Helper()
	return startNATSWith(t, n, natstest.Options{NoAdvertise: true})
}

// startNATSWith starts servers with other settings than the suite's. They have a
// bucket and so a leader, as etcd has from the start.
func startNATSWith(t *testing.T, n int, o natstest.Options) natsCluster {
	t.Helper()
	c := natsCluster{natstest.StartCluster(t, n, o)}
	s := openNATS(t, natsOptions(c.URLs()...))
	defer func() { s.must(s.Close()) }()
	// Servers that do not know each other yet refuse to make it.
	process.Await(t, "there is a bucket", func() bool {
		_, err := s.Get(s.ctx, "none") // a session would be listed as a gateway
		return err == nil
	})
	return c
}

func (c natsCluster) backend(limits timing, addresses ...string) string {
	return natsBackend(limits, addresses)
}

// natsBackend is the config of a gateway on NATS.
func natsBackend(limits timing, addresses []string, more ...string) string {
	return fmt.Sprintf(`backend nats {
	servers %s
	bucket %s
	session_ttl %s
	request_timeout %s
	%s
}`, strings.Join(addresses, " "), natsBucket, limits.session, limits.request, strings.Join(more, "\n\t"))
}

func (c natsCluster) members() (members []member) {
	for _, m := range c.Members() {
		members = append(members, m)
	}
	return members
}

func (c natsCluster) leader(t testing.TB) member { return c.Leader(t, natsStream) }
func (c natsCluster) moveLeader(t testing.TB)    { c.StepDown(t, natsStream) }
func (c natsCluster) tellsEnds() bool            { return false } // that a key expires is no event
func (c natsCluster) compact(testing.TB)         {}               // it keeps no more than the last of each record

func (c natsCluster) revisions(t *testing.T, lock string) func() (uint64, error) {
	t.Helper()
	s := openNATS(t, natsOptions(c.URLs()...))
	t.Cleanup(func() { s.must(s.Close()) })
	return func() (uint64, error) {
		e, err := s.Get(t.Context(), lock)
		return e.Revision, err
	}
}

// onNATS runs a test on NATS.
func onNATS(t *testing.T, test func(t *testing.T, start starter)) {
	t.Helper()
	t.Parallel()
	test(t, startNATS)
}

func TestNATSGatewayKilledUnderLoad(t *testing.T) { onNATS(t, testGatewayKilledUnderLoad) }
func TestNATSGatewayFrozenUnderLoad(t *testing.T) { onNATS(t, testGatewayFrozenUnderLoad) }
func TestNATSKilledGatewayTakesItsWaitersAlong(t *testing.T) {
	onNATS(t, testKilledGatewayTakesItsWaitersAlong)
}
func TestNATSPlacesOfADeadGatewayHoldNobodyUp(t *testing.T) {
	onNATS(t, testPlacesOfADeadGatewayHoldNobodyUp)
}
func TestNATSPlacesOfADeadGatewayHoldNobodyUpWhoTriesOnce(t *testing.T) {
	onNATS(t, testPlacesOfADeadGatewayHoldNobodyUpWhoTriesOnce)
}
func TestNATSSlotsOfAKilledGatewayStayHeld(t *testing.T) {
	onNATS(t, testSlotsOfAKilledGatewayStayHeld)
}
func TestNATSB27RestartKeepsHolders(t *testing.T) { onNATS(t, testB27RestartKeepsHolders) }
func TestNATSGatewayKilledBetweenItsAnswers(t *testing.T) {
	onNATS(t, testGatewayKilledBetweenItsAnswers)
}
func TestNATSPartitionedGateway(t *testing.T)           { onNATS(t, testPartitionedGateway) }
func TestNATSPartitionsUnderLoad(t *testing.T)          { onNATS(t, testPartitionsUnderLoad) }
func TestNATSLostRepliesUnderLoad(t *testing.T)         { onNATS(t, testLostRepliesUnderLoad) }
func TestNATSLostReplyIsFoundOut(t *testing.T)          { onNATS(t, testLostReplyIsFoundOut) }
func TestNATSB4RepeatedReleaseHarmsNobody(t *testing.T) { onNATS(t, testB4RepeatedReleaseHarmsNobody) }
func TestNATSB22ClientTimeOutDuringStallTakesNothing(t *testing.T) {
	onNATS(t, testB22ClientTimeOutDuringStallTakesNothing)
}
func TestNATSHolderKeepsItsSlotWhenItsFirstConnectionDies(t *testing.T) {
	onNATS(t, testHolderKeepsItsSlotWhenItsFirstConnectionDies)
}
func TestNATSOrderAcrossGateways(t *testing.T)      { onNATS(t, testOrderAcrossGateways) }
func TestNATSOrderWithoutThoseWhoLeft(t *testing.T) { onNATS(t, testOrderWithoutThoseWhoLeft) }
func TestNATSB3HangUpRacesGrant(t *testing.T)       { onNATS(t, testB3HangUpRacesGrant) }
func TestNATSB25EightClientsInARow(t *testing.T)    { onNATS(t, testB25EightClientsInARow) }
func TestNATSB26ReleaserDoesNotBarge(t *testing.T)  { onNATS(t, testB26ReleaserDoesNotBarge) }
func TestNATSHolderChangesGateways(t *testing.T)    { onNATS(t, testHolderChangesGateways) }
func TestNATSHolderSharesItsPlaceAcrossGateways(t *testing.T) {
	onNATS(t, testHolderSharesItsPlaceAcrossGateways)
}
func TestNATSResetEmptiesTheQueueEverywhere(t *testing.T) {
	onNATS(t, testResetEmptiesTheQueueEverywhere)
}
func TestNATSResetRacesEverything(t *testing.T)  { onNATS(t, testResetRacesEverything) }
func TestNATSMemberKilledUnderLoad(t *testing.T) { onNATS(t, testMemberKilledUnderLoad) }
func TestNATSMemberFrozenUnderLoad(t *testing.T) { onNATS(t, testMemberFrozenUnderLoad) }
func TestNATSClusterWithoutMajorityComesBack(t *testing.T) {
	onNATS(t, testClusterWithoutMajorityComesBack)
}
func TestNATSElectionKeepsTheQueue(t *testing.T) { onNATS(t, testElectionKeepsTheQueue) }
func TestNATSB1FrozenGatewayGrantsNothingItLost(t *testing.T) {
	onNATS(t, testB1FrozenGatewayGrantsNothingItLost)
}
func TestNATSGatewayFrozenWithACommittedGrant(t *testing.T) {
	onNATS(t, testGatewayFrozenWithACommittedGrant)
}
func TestNATSGatewayKilledWithACommittedGrant(t *testing.T) {
	onNATS(t, testGatewayKilledWithACommittedGrant)
}
func TestNATSCreateStuckInAFrozenMember(t *testing.T) { onNATS(t, testCreateStuckInAFrozenMember) }
func TestNATSB15SlotsOfTheDeadFreeThemselvesOneByOne(t *testing.T) {
	onNATS(t, testB15SlotsOfTheDeadFreeThemselvesOneByOne)
}
func TestNATSB29LateRenewalGetsANewToken(t *testing.T) { onNATS(t, testB29LateRenewalGetsANewToken) }
func TestNATSRenewalsThroughAnyGatewayKeepTheSlot(t *testing.T) {
	onNATS(t, testRenewalsThroughAnyGatewayKeepTheSlot)
}
func TestNATSB30TTLStartsAtTheGrant(t *testing.T) { onNATS(t, testB30TTLStartsAtTheGrant) }
func TestNATSB14DoubleReleaseNeverExceedsMax(t *testing.T) {
	onNATS(t, testB14DoubleReleaseNeverExceedsMax)
}
func TestNATSB23RepeatedGetTakesOneSlot(t *testing.T) { onNATS(t, testB23RepeatedGetTakesOneSlot) }
func TestNATSLinearizableUnderFaults(t *testing.T)    { onNATS(t, testLinearizableUnderFaults) }
