package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The faults. A kill is SIGKILL followed by a start after some time. A stop is
// SIGSTOP followed by SIGCONT some seconds later.
const (
	KillWorker Kind = "kill worker"
	KillDoor   Kind = "kill front door"
	KillNATS   Kind = "kill nats"
	KillServer Kind = "kill mcp server" // its worker continues
	KillAll    Kind = "kill everything" // front doors, workers and NATS at once
	StopWorker Kind = "stop worker"
	StopDoor   Kind = "stop front door"
	StopNATS   Kind = "stop nats"
	// CutPower removes unsynced data from the disk of NATS. With an odd victim
	// every other process loses its power too.
	CutPower Kind = "cut power"
	// FillDisk fills the disk of NATS, and frees the space again.
	FillDisk Kind = "fill disk"
	// StopServer stops an MCP server of a worker, in the middle of its calls.
	StopServer Kind = "stop mcp server"
	// RestartAll stops all processes gracefully and starts them again.
	RestartAll Kind = "restart everything"
	// KillNode and StopNode hit one node of a NATS cluster.
	KillNode Kind = "kill nats node"
	StopNode Kind = "stop nats node"
	// PartitionWorker, PartitionDoor and PartitionNode disconnect a process from the network of
	// the fleet. SplitNodes disconnects one NATS node from the other nodes only.
	PartitionWorker Kind = "partition worker"
	PartitionDoor   Kind = "partition front door"
	PartitionNode   Kind = "partition nats node"
	SplitNodes      Kind = "split nats cluster"
	// SlowLAN delays every packet and drops some.
	SlowLAN Kind = "slow network"
	// JumpWorker, JumpDoor and JumpNATS set a clock an hour forwards or backwards, and
	// reset it.
	JumpWorker Kind = "clock of worker"
	JumpDoor   Kind = "clock of front door"
	JumpNATS   Kind = "clock of nats"
)

// lasts reports whether the fault also affects calls that begin while it lasts,
// not only the calls that are in flight when it strikes.
func (k Kind) lasts() bool {
	switch k {
	case PartitionWorker, PartitionDoor, PartitionNode, SplitNodes, SlowLAN, FillDisk, StopServer, JumpWorker, JumpDoor, JumpNATS, StopNode, StopWorker, StopDoor, StopNATS:
		return true
	}
	return false
}

// Share is the number of faults of a kind in a campaign.
type Share struct {
	Kind  Kind
	Count int
}

// nodesOfCluster is the number of nodes of a NATS cluster.
const nodesOfCluster = 3

// Fault is one fault of a campaign.
type Fault struct {
	Kind Kind
	// Victim is the index of the process in the fleet, among those of its kind.
	Victim int
	// At is the share of the calls, from 0 to 1, that must have ended before it strikes.
	At float64
	// Down is the time that the victim is down.
	Down time.Duration
	// Ahead is the clock offset during that time.
	Ahead time.Duration
}

// String names the fault and its victim.
func (f Fault) String() string { return fmt.Sprintf("%s %d", f.Kind, f.Victim) }

// Plan draws the faults of a campaign, in the order in which they strike. The same
// arguments give the same plan.
func Plan(seed uint64, mix []Share, doors, workers int) []Fault {
	random := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	var faults []Fault
	for _, s := range mix {
		for range s.Count {
			faults = append(faults, Fault{Kind: s.Kind})
		}
	}
	random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	among := func(n int) int { return random.IntN(max(n, 1)) }
	span := func(least, most time.Duration) time.Duration {
		return (least + time.Duration(random.Int64N(int64(most-least)))).Round(time.Millisecond)
	}
	for i := range faults {
		f := &faults[i]
		f.At = (float64(i) + 0.2 + 0.6*random.Float64()) / float64(len(faults)+1)
		switch f.Kind {
		case KillWorker, KillServer:
			f.Victim, f.Down = among(workers), span(0, 400*time.Millisecond)
		case KillDoor:
			f.Victim, f.Down = among(doors), span(0, time.Second)
		case StopWorker, StopDoor:
			n := workers
			if f.Kind == StopDoor {
				n = doors
			}
			f.Victim, f.Down = among(n), span(time.Second, 5*time.Second)
			if random.IntN(4) == 0 { // long enough for others to acquire its work before it wakes
				f.Down = span(12*time.Second, 14*time.Second)
			}
		case StopNATS:
			f.Down = span(500*time.Millisecond, 4*time.Second)
		case CutPower:
			f.Victim, f.Down = among(2), span(0, time.Second)
		case FillDisk:
			f.Down = span(2*time.Second, 6*time.Second)
		case StopServer:
			f.Victim, f.Down = among(workers), span(2*time.Second, 8*time.Second)
		case KillNode:
			f.Victim, f.Down = among(nodesOfCluster), span(0, 2*time.Second)
		case PartitionWorker, PartitionDoor, PartitionNode, SplitNodes, StopNode, JumpWorker, JumpDoor, JumpNATS:
			n := map[Kind]int{PartitionWorker: workers, JumpWorker: workers, PartitionDoor: doors, JumpDoor: doors, JumpNATS: 1}[f.Kind]
			if n == 0 {
				n = nodesOfCluster
			}
			f.Victim, f.Down = among(n), span(2*time.Second, 6*time.Second)
			if random.IntN(4) == 0 { // longer than a lease
				f.Down = span(14*time.Second, 18*time.Second)
			}
			if f.Ahead = time.Hour; random.IntN(2) == 0 {
				f.Ahead = -time.Hour
			}
		case SlowLAN:
			f.Down = span(3*time.Second, 8*time.Second)
		default:
			f.Down = span(0, time.Second)
		}
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return faults
}
