package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/integration/etcdtest"
)

// prefix is what the keys of the gateways begin with.
const prefix = "integration"

// etcdBackend is the config of a gateway on etcd.
func etcdBackend(prefix string, limits timing, endpoints []string, more ...string) string {
	return fmt.Sprintf(`backend etcd {
	endpoints %s
	prefix %s
	session_ttl %s
	request_timeout %s
	%s
}`, strings.Join(endpoints, " "), prefix, limits.session, limits.request, strings.Join(more, "\n\t"))
}

// etcdCluster is etcd as a cluster.
type etcdCluster struct{ *etcdtest.Cluster }

func startEtcd(t *testing.T, n int) cluster {
	t.Helper()
	return etcdCluster{etcdtest.StartCluster(t, n, etcdtest.Options{})}
}

func (c etcdCluster) backend(limits timing, addresses ...string) string {
	var endpoints []string
	for _, a := range addresses {
		endpoints = append(endpoints, "http://"+a)
	}
	return etcdBackend(prefix, limits, endpoints)
}

func (c etcdCluster) members() (members []member) {
	for _, m := range c.Members() {
		members = append(members, m)
	}
	return members
}

func (c etcdCluster) leader(t testing.TB) member { return c.Leader(t) }
func (c etcdCluster) moveLeader(t testing.TB)    { c.MoveLeader(t) }
func (c etcdCluster) tellsEnds() bool            { return true }
func (c etcdCluster) compact(t testing.TB)       { c.Compact(t) }

func (c etcdCluster) revisions(t *testing.T, lock string) func() (uint64, error) {
	t.Helper()
	return func() (uint64, error) {
		got, err := c.Client().Get(t.Context(), prefix+"/locks/"+lock)
		if err != nil || len(got.Kvs) == 0 {
			return 0, err
		}
		return uint64(got.Kvs[0].ModRevision), nil
	}
}

// onEtcd runs a test on etcd.
func onEtcd(t *testing.T, test func(t *testing.T, start starter)) {
	t.Helper()
	t.Parallel()
	test(t, startEtcd)
}

func TestGatewayKilledUnderLoad(t *testing.T) { onEtcd(t, testGatewayKilledUnderLoad) }
func TestGatewayFrozenUnderLoad(t *testing.T) { onEtcd(t, testGatewayFrozenUnderLoad) }
func TestKilledGatewayTakesItsWaitersAlong(t *testing.T) {
	onEtcd(t, testKilledGatewayTakesItsWaitersAlong)
}
func TestPlacesOfADeadGatewayHoldNobodyUp(t *testing.T) {
	onEtcd(t, testPlacesOfADeadGatewayHoldNobodyUp)
}
func TestPlacesOfADeadGatewayHoldNobodyUpWhoTriesOnce(t *testing.T) {
	onEtcd(t, testPlacesOfADeadGatewayHoldNobodyUpWhoTriesOnce)
}
func TestSlotsOfAKilledGatewayStayHeld(t *testing.T)  { onEtcd(t, testSlotsOfAKilledGatewayStayHeld) }
func TestB27RestartKeepsHolders(t *testing.T)         { onEtcd(t, testB27RestartKeepsHolders) }
func TestGatewayKilledBetweenItsAnswers(t *testing.T) { onEtcd(t, testGatewayKilledBetweenItsAnswers) }
func TestPartitionedGateway(t *testing.T)             { onEtcd(t, testPartitionedGateway) }
func TestPartitionsUnderLoad(t *testing.T)            { onEtcd(t, testPartitionsUnderLoad) }
func TestLostRepliesUnderLoad(t *testing.T)           { onEtcd(t, testLostRepliesUnderLoad) }
func TestLostReplyIsFoundOut(t *testing.T)            { onEtcd(t, testLostReplyIsFoundOut) }
func TestB4RepeatedReleaseHarmsNobody(t *testing.T)   { onEtcd(t, testB4RepeatedReleaseHarmsNobody) }
func TestB22ClientTimeOutDuringStallTakesNothing(t *testing.T) {
	onEtcd(t, testB22ClientTimeOutDuringStallTakesNothing)
}
func TestHolderKeepsItsSlotWhenItsFirstConnectionDies(t *testing.T) {
	onEtcd(t, testHolderKeepsItsSlotWhenItsFirstConnectionDies)
}
func TestOrderAcrossGateways(t *testing.T)      { onEtcd(t, testOrderAcrossGateways) }
func TestOrderWithoutThoseWhoLeft(t *testing.T) { onEtcd(t, testOrderWithoutThoseWhoLeft) }
func TestB3HangUpRacesGrant(t *testing.T)       { onEtcd(t, testB3HangUpRacesGrant) }
func TestB25EightClientsInARow(t *testing.T)    { onEtcd(t, testB25EightClientsInARow) }
func TestB26ReleaserDoesNotBarge(t *testing.T)  { onEtcd(t, testB26ReleaserDoesNotBarge) }
func TestHolderChangesGateways(t *testing.T)    { onEtcd(t, testHolderChangesGateways) }
func TestHolderSharesItsPlaceAcrossGateways(t *testing.T) {
	onEtcd(t, testHolderSharesItsPlaceAcrossGateways)
}
func TestResetEmptiesTheQueueEverywhere(t *testing.T) { onEtcd(t, testResetEmptiesTheQueueEverywhere) }
func TestResetRacesEverything(t *testing.T)           { onEtcd(t, testResetRacesEverything) }
func TestMemberKilledUnderLoad(t *testing.T)          { onEtcd(t, testMemberKilledUnderLoad) }
func TestMemberFrozenUnderLoad(t *testing.T)          { onEtcd(t, testMemberFrozenUnderLoad) }
func TestClusterWithoutMajorityComesBack(t *testing.T) {
	onEtcd(t, testClusterWithoutMajorityComesBack)
}
func TestElectionKeepsTheQueue(t *testing.T) { onEtcd(t, testElectionKeepsTheQueue) }
func TestB1FrozenGatewayGrantsNothingItLost(t *testing.T) {
	onEtcd(t, testB1FrozenGatewayGrantsNothingItLost)
}
func TestGatewayFrozenWithACommittedGrant(t *testing.T) {
	onEtcd(t, testGatewayFrozenWithACommittedGrant)
}
func TestGatewayKilledWithACommittedGrant(t *testing.T) {
	onEtcd(t, testGatewayKilledWithACommittedGrant)
}
func TestCreateStuckInAFrozenMember(t *testing.T) { onEtcd(t, testCreateStuckInAFrozenMember) }
func TestB15SlotsOfTheDeadFreeThemselvesOneByOne(t *testing.T) {
	onEtcd(t, testB15SlotsOfTheDeadFreeThemselvesOneByOne)
}
func TestB29LateRenewalGetsANewToken(t *testing.T) { onEtcd(t, testB29LateRenewalGetsANewToken) }
func TestRenewalsThroughAnyGatewayKeepTheSlot(t *testing.T) {
	onEtcd(t, testRenewalsThroughAnyGatewayKeepTheSlot)
}
func TestB30TTLStartsAtTheGrant(t *testing.T) { onEtcd(t, testB30TTLStartsAtTheGrant) }
func TestB14DoubleReleaseNeverExceedsMax(t *testing.T) {
	onEtcd(t, testB14DoubleReleaseNeverExceedsMax)
}
func TestB23RepeatedGetTakesOneSlot(t *testing.T) { onEtcd(t, testB23RepeatedGetTakesOneSlot) }
func TestLinearizableUnderFaults(t *testing.T)    { onEtcd(t, testLinearizableUnderFaults) }
