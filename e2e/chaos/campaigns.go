package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Size selects the length of the campaigns.
type Size string

// The sizes. Short is part of the tests, and Full is for a release.
const (
	Short  Size = "short"
	Medium Size = "medium"
	Full   Size = "full"
)

// settleWithin limits the time in which calls must end after the last fault.
const settleWithin = 2 * time.Minute

// Campaigns returns the campaigns of a size, in the order in which they run: kills
// and stops, power cuts, a broken network, and the campaigns which prove that the harness
// detects a missing guard. Campaigns that this machine does not support are left out and logged.
func Campaigns(ctx context.Context, size Size, seed uint64, programs Programs, dir string, log *slog.Logger) ([]*Campaign, error) {
	kills := &Campaign{
		Name: "kills", Doors: 2, Workers: 3, Clients: 32, Calls: 3000, BatchCalls: 1000, BatchSize: 500, CancelCalls: 300, CancelShare: 2, ToolMS: 60,
		Mix: []Share{{KillWorker, 12}, {KillDoor, 4}, {KillNATS, 4}, {KillServer, 1}, {StopWorker, 1}, {StopDoor, 1}, {StopNATS, 1}},
	}
	power := &Campaign{
		Name: "power", Doors: 2, Workers: 2, Clients: 24, Calls: 500, BatchCalls: 200, BatchSize: 200, ToolMS: 40, Mix: []Share{{CutPower, 2}},
	}
	network := &Campaign{
		Name: "network", Nodes: nodesOfCluster, Doors: 2, Workers: 3, Clients: 24, Calls: 700, BatchCalls: 300, BatchSize: 300, ToolMS: 40,
		Mix: []Share{{SplitNodes, 1}, {PartitionWorker, 1}, {PartitionDoor, 1}, {KillNode, 1}, {SlowLAN, 1}},
	}
	honest := &Campaign{
		Name: "honest ends", Doors: 2, Workers: 3, Clients: 48, Calls: 6000, CancelShare: 1, ToolMS: 300,
		Mix: []Share{{KillWorker, 50}, {KillDoor, 15}, {KillNATS, 10}, {KillServer, 5}},
	}
	switch size {
	case Short:
		network.Down = 6 * time.Second
	case Medium:
		kills.Doors, kills.Workers, kills.Clients, kills.Calls, kills.BatchCalls, kills.BatchSize = 3, 4, 48, 20_000, 6000, 1000
		kills.Mix = []Share{{KillWorker, 100}, {KillDoor, 12}, {KillNATS, 12}, {KillServer, 6}, {KillAll, 2}, {StopWorker, 4}, {StopDoor, 4}, {StopNATS, 3}}
		power.Calls, power.BatchCalls, power.Mix = 2000, 600, []Share{{CutPower, 6}}
		network.Calls, network.BatchCalls, network.BatchSize = 5000, 1500, 500
		network.Mix = []Share{{SplitNodes, 5}, {PartitionNode, 5}, {PartitionWorker, 6}, {PartitionDoor, 6}, {KillNode, 6}, {StopNode, 4}, {SlowLAN, 3}}
	case Full:
		kills.Doors, kills.Workers, kills.Clients, kills.Calls, kills.BatchCalls, kills.BatchSize = 3, 4, 64, 100_000, 30_000, 3000
		kills.Mix = []Share{{KillWorker, 500}, {KillDoor, 50}, {KillNATS, 50}, {KillServer, 25}, {KillAll, 5}, {StopWorker, 12}, {StopDoor, 12}, {StopNATS, 8}}
		power.Calls, power.BatchCalls, power.Mix = 10_000, 3000, []Share{{CutPower, 20}}
		network.Calls, network.BatchCalls, network.BatchSize = 10_000, 3000, 1000
		network.Mix = []Share{{SplitNodes, 12}, {PartitionNode, 12}, {PartitionWorker, 15}, {PartitionDoor, 15}, {KillNode, 20}, {StopNode, 8}, {SlowLAN, 6}}
	default:
		return nil, fmt.Errorf("the size %q is none of short, medium and full", size)
	}
	unguarded := &Campaign{
		Name: "without intents", Unguarded: true, Doors: 2, Workers: 3, Clients: 24, Calls: 300, ToolMS: 600, Mix: []Share{{KillDoor, 2}},
	}
	unsynced := &Campaign{
		Name: "without sync", Lax: true, Doors: 2, Workers: 2, Clients: 16, Calls: 200, ToolMS: 20, Mix: []Share{{CutPower, 1}},
	}
	all := []*Campaign{kills}
	if size != Short {
		all = append(all, honest)
	}
	if canCutPower {
		all = append(all, power)
	} else {
		log.Warn("power cuts need the loop mounts of Linux; they are left out")
	}
	if err := CanMakeNetworks(ctx); err == nil {
		all = append(all, network)
	} else {
		log.Warn("a network that can be broken needs root on Linux, with /dev/net/tun; it is left out", "error", err)
	}
	all = append(all, unguarded)
	if canCutPower {
		all = append(all, unsynced)
	}
	for _, c := range all {
		c.Seed, c.Programs, c.Dir, c.Log, c.Settle = seed, programs, dir, log, settleWithin
	}
	unsynced.Settle = 30 * time.Second // a process that lost its streams may not recover
	return all, nil
}
