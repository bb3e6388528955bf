package stories

import "testing"

func TestPartitionedNATSNodeLosesAndRepeatsNothing(t *testing.T) {
	f := sharedCluster(t)
	node := f.Part("nats-2")
	throughAFault(t, f, func() { must(t, node.Cut(t.Context(), "bus")) })
	throughAFault(t, f, func() { must(t, node.Reconnect(t.Context(), "bus")) })
}
