package stories

import "testing"

func TestKilledNATSNodeLosesAndRepeatsNothing(t *testing.T) {
	f := sharedCluster(t)
	node := f.Part("nats-1")
	callDuringFault(t, f, func() { must(t, node.Kill(t.Context())) })
	must(t, node.Start(t.Context()))
	callDuringFault(t, f, func() {}) // with all three nodes
}
