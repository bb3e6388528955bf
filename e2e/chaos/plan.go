package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a sort of fault.
type Kind string

// The faults. A kill is a kill -9 and a start some moments later; a stop is a
// SIGSTOP and a SIGCONT some seconds later.
const (
	KillWorker Kind = "kill worker"
	KillDoor   Kind = "kill front door"
	KillNATS   Kind = "kill nats"
	KillServer Kind = "kill mcp server" // its worker lives on
	KillAll    Kind = "kill everything" // front doors, workers and NATS at once
	StopWorker Kind = "stop worker"
	StopDoor   Kind = "stop front door"
	StopNATS   Kind = "stop nats"
	// CutPower takes from the disk of NATS what was not synced; with an odd victim
	// every other process loses its power too.
	CutPower Kind = "cut power"
)

// Share is how many faults of a kind a campaign has.
type Share struct {
	Kind  Kind
	Count int
}

// Fault is one thing that goes wrong.
type Fault struct {
	Kind Kind
	// Victim says which process of the kind, by its place in the fleet.
	Victim int
	// At is the share of the calls, from 0 to 1, that have ended when it strikes.
	At float64
	// Down is how long the victim stays away.
	Down time.Duration
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
			if random.IntN(4) == 0 { // so long that others take its work over, and then it wakes
				f.Down = span(12*time.Second, 14*time.Second)
			}
		case StopNATS:
			f.Down = span(500*time.Millisecond, 4*time.Second)
		case CutPower:
			f.Victim, f.Down = among(2), span(0, time.Second)
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
