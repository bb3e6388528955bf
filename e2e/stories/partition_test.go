package stories

import "testing"

func TestPartitionedNATSNodeLosesAndRepeatsNothing(t *testing.T) {
	f := sharedCluster(t)
	node := f.Part("nats-2")
	callDuringFault(t, f, func() { must(t, node.Cut(t.Context(), "bus")) })
	callDuringFault(t, f, func() { must(t, node.Reconnect(t.Context(), "bus")) })
}
