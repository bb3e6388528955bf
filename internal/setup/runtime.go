package setup

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// heapGrows is how much a small heap grows before it is collected, in percent of
	// what lives. It grows by at most heapBudget; by as much as lives where that is more, up
	// to twice heapBudget: with a batch of a million calls more lives, and five times that
	// would be memory for nothing.
	heapGrows      = 400
	heapGrowsLeast = 50
	heapBudget     = 32 << 20
	// serverBudget is the room that each server brings: what its sessions keep is looked
	// through at each collection, so with hundreds of them there had better be few. Their
	// processes take many times that.
	serverBudget = 512 << 10

	// memoryFreely is the memory below which only the percentage decides when the heap is
	// collected. A process that needs more collects when a tenth and memorySpare are added
	// to what is in use, and gives memory back that it does not use: with 11,500 requests
	// that wait, the runtime kept 150 MiB for nothing.
	memoryFreely = 448 << 20
	memorySpare  = 40 << 20

	liveBytes  = "/gc/heap/live:bytes"
	stackBytes = "/memory/classes/heap/stacks:bytes"
)

// TuneRuntime lets a small heap grow to five times what lives before it is collected:
// collecting it less often saves a tenth of the CPU time of a call. A process that holds
// many servers gives it more room. A large heap grows by less. GOGC and GOMEMLIMIT in the
// environment win.
func TuneRuntime(servers int) {
	w := &heapWatch{budget: heapBudget + uint64(servers)*serverBudget}
	if os.Getenv("GOGC") == "" {
		w.percent = heapGrows
		debug.SetGCPercent(heapGrows)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		w.limit = memoryFreely
		debug.SetMemoryLimit(memoryFreely)
	}
	if w.percent > 0 || w.limit > 0 {
		w.again()
	}
}

// fewProcessors is up to how many processors a worker leaves half of them alone. On two
// cores three processes do a twentieth more calls so, which is all that was measured:
// with more cores a worker takes what it needs, like any Go program.
const fewProcessors = 2

// LeaveProcessors keeps the Go code of this process to half of its processors, rounded
// up, where they are few: a worker's tools run next to it and take far more time than it
// does, and its threads would look for work on processors that they could use.
// GOMAXPROCS in the environment wins.
func LeaveProcessors() {
	if n := runtime.GOMAXPROCS(0); n <= fewProcessors && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS((n + 1) / 2)
	}
}

// heapWatch looks at the heap after each collection: its finalizer is how the runtime
// tells of one. A zero percent or limit is the environment's, and is left alone.
type heapWatch struct {
	percent int
	limit   int64
	budget  uint64
	_       *int // the runtime may forget about the finalizers of small things without pointers
}

func (w *heapWatch) again() {
	runtime.SetFinalizer(&heapWatch{percent: w.percent, limit: w.limit, budget: w.budget}, func(w *heapWatch) {
		sample := []metrics.Sample{{Name: liveBytes}, {Name: stackBytes}}
		metrics.Read(sample)
		live, stacks := sample[0].Value.Uint64(), sample[1].Value.Uint64()
		if percent := percentFor(live, w.budget); w.percent > 0 && live > 0 && differ(int64(percent), int64(w.percent), 10) {
			w.percent = percent
			debug.SetGCPercent(percent)
		}
		if limit := limitFor(live + stacks); w.limit > 0 && differ(limit, w.limit, 20) {
			w.limit = limit
			debug.SetMemoryLimit(limit)
		}
		w.again()
	})
}

// percentFor is by how much a heap grows of which that many bytes live.
func percentFor(live, budget uint64) int {
	if live == 0 {
		return heapGrows
	}
	growth := max(budget, min(live, 2*budget))
	return int(min(max(growth*100/live, heapGrowsLeast), heapGrows))
}

// limitFor is the memory limit of a process of which that many bytes are in use.
func limitFor(used uint64) int64 {
	return int64(max(used+used/10+memorySpare, memoryFreely))
}

// differ says whether a differs from b by more than one part in parts.
func differ(a, b, parts int64) bool {
	diff := max(a-b, b-a)
	return diff*parts > b
}
