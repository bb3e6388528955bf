package chaos

import (
	"fmt"
	"log/slog"
	"time"
)

// Size says how long the campaigns are.
type Size string

// The sizes: Short is part of the tests, Full is for a release.
const (
	Short  Size = "short"
	Medium Size = "medium"
	Full   Size = "full"
)

// Campaigns returns the campaigns of a size, in the order in which they run: kills
// and stops, power cuts, and then the proofs that the harness sees a missing guard.
func Campaigns(size Size, seed uint64, programs Programs, dir string, log *slog.Logger) ([]*Campaign, error) {
	kills := &Campaign{
		Name: "kills", Doors: 2, Workers: 3, Clients: 32, Calls: 3000, BatchCalls: 1000, BatchSize: 500, CancelCalls: 300, ToolMS: 60,
		Mix: []Share{{KillWorker, 12}, {KillDoor, 4}, {KillNATS, 4}, {KillServer, 1}, {StopWorker, 1}, {StopDoor, 1}, {StopNATS, 1}},
	}
	power := &Campaign{
		Name: "power", Doors: 2, Workers: 2, Clients: 24, Calls: 500, BatchCalls: 200, BatchSize: 200, ToolMS: 40, Mix: []Share{{CutPower, 2}},
	}
	switch size {
	case Short:
	case Medium:
		kills.Doors, kills.Workers, kills.Clients, kills.Calls, kills.BatchCalls, kills.BatchSize = 3, 4, 48, 20_000, 6000, 1000
		kills.Mix = []Share{{KillWorker, 100}, {KillDoor, 12}, {KillNATS, 12}, {KillServer, 6}, {KillAll, 2}, {StopWorker, 4}, {StopDoor, 4}, {StopNATS, 3}}
		power.Calls, power.BatchCalls, power.Mix = 2000, 600, []Share{{CutPower, 6}}
	case Full:
		kills.Doors, kills.Workers, kills.Clients, kills.Calls, kills.BatchCalls, kills.BatchSize = 3, 4, 64, 100_000, 30_000, 3000
		kills.Mix = []Share{{KillWorker, 500}, {KillDoor, 50}, {KillNATS, 50}, {KillServer, 25}, {KillAll, 5}, {StopWorker, 12}, {StopDoor, 12}, {StopNATS, 8}}
		power.Calls, power.BatchCalls, power.Mix = 10_000, 3000, []Share{{CutPower, 20}}
	default:
		return nil, fmt.Errorf("the size %q is none of short, medium and full", size)
	}
	unguarded := &Campaign{
		Name: "without intents", Unguarded: true, Doors: 2, Workers: 3, Clients: 24, Calls: 300, ToolMS: 600, Mix: []Share{{KillDoor, 2}},
	}
	unsynced := &Campaign{
		Name: "without sync", Lax: true, Doors: 2, Workers: 2, Clients: 16, Calls: 200, ToolMS: 20, Mix: []Share{{CutPower, 1}},
	}
	all := []*Campaign{kills, power, unguarded, unsynced}
	unsynced.Settle = 30 * time.Second // what lost its streams may not come back at all
	if !canCutPower {
		log.Warn("power cuts need the loop mounts of Linux; they are left out")
		all = []*Campaign{kills, unguarded}
	}
	for _, c := range all {
		c.Seed, c.Programs, c.Dir, c.Log, c.Settle = seed, programs, dir, log, 2*time.Minute
	}
	return all, nil
}
