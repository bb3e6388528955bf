package setup

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// heapGrows is the growth of a small heap before a collection, in percent of the live heap. It
	// grows by at most heapBudget, or by the size of the live heap if that is larger, up to twice
	// heapBudget. A batch of a million calls has a large live heap, and five times that would waste
	// memory.
	heapGrows      = 400
	heapGrowsLeast = 50
	heapBudget     = 32 << 20
	// serverBudget is the additional heap growth for each server. A collection scans the state of its
	// sessions, so with hundreds of servers collections should be rare. Their processes take many
	// times that memory.
	serverBudget = 512 << 10

	// memoryFreely is the memory below which only the percentage triggers a collection. A larger
	// process collects when memory in use has grown by a tenth plus memorySpare, and returns unused
	// memory: with 11,500 waiting requests, the runtime otherwise kept 150 MiB of unused memory.
	memoryFreely = 448 << 20
	memorySpare  = 40 << 20

	liveBytes  = "/gc/heap/live:bytes"
	stackBytes = "/memory/classes/heap/stacks:bytes"
)

// TuneRuntime lets a small heap grow to five times the live heap before a collection, because fewer
// collections save a tenth of the CPU time of a call. A process with many servers may grow more. A
// large heap grows by a smaller factor. The memory limit of the process's cgroup bounds both: close
// to it, collections are frequent instead. GOGC and GOMEMLIMIT in the environment take precedence.
func TuneRuntime(servers int) {
	w := &heapWatch{budget: heapBudget + uint64(servers)*serverBudget, most: mostMemory(cgroupMemory(os.DirFS("/")), servers)}
	if os.Getenv("GOGC") == "" {
		w.percent = heapGrows
		debug.SetGCPercent(heapGrows)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		w.limit = limitFor(0, w.most)
		debug.SetMemoryLimit(w.limit)
	}
	if w.percent > 0 || w.limit > 0 {
		w.again()
	}
}

// fewProcessors is the largest number of processors at which a worker leaves half of them free. On
// two cores, three processes handle five percent more calls this way. That is all that was
// measured, so with more cores a worker uses all of them, like any Go program.
const fewProcessors = 2

// LimitProcessors limits the Go code of this process to half of its processors, rounded up, if there
// are few. The tools of a worker run next to it and take much more CPU time than the worker, whose
// threads would otherwise search for work on processors that the tools could use. GOMAXPROCS in the
// environment takes precedence.
func LimitProcessors() {
	if n := runtime.GOMAXPROCS(0); n <= fewProcessors && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS((n + 1) / 2)
	}
}

// heapWatch checks the heap after each collection. The runtime reports a collection by running its
// finalizer. A zero percent or limit means that the environment sets it; heapWatch does not change
// it then.
type heapWatch struct {
	percent int
	limit   int64
	budget  uint64
	most    int64
	_       *int // the runtime may not run finalizers of small objects without pointers
}

func (w *heapWatch) again() {
	runtime.SetFinalizer(&heapWatch{percent: w.percent, limit: w.limit, budget: w.budget, most: w.most}, func(w *heapWatch) {
		sample := []metrics.Sample{{Name: liveBytes}, {Name: stackBytes}}
		metrics.Read(sample)
		live, stacks := sample[0].Value.Uint64(), sample[1].Value.Uint64()
		if percent := percentFor(live, w.budget); w.percent > 0 && live > 0 && differ(int64(percent), int64(w.percent), 10) {
			w.percent = percent
			debug.SetGCPercent(percent)
		}
		if limit := limitFor(live+stacks, w.most); w.limit > 0 && differ(limit, w.limit, 20) {
			w.limit = limit
			debug.SetMemoryLimit(limit)
		}
		w.again()
	})
}

// percentFor returns the growth in percent for a live heap of that many bytes.
func percentFor(live, budget uint64) int {
	if live == 0 {
		return heapGrows
	}
	growth := max(budget, min(live, 2*budget))
	return int(min(max(growth*100/live, heapGrowsLeast), heapGrows))
}

// limitFor returns the memory limit of a process that uses that many bytes and may use at most most.
func limitFor(used uint64, most int64) int64 {
	return min(int64(max(used+used/10+memorySpare, memoryFreely)), most)
}

// differ reports whether a differs from b by more than one part in parts.
func differ(a, b, parts int64) bool {
	diff := max(a-b, b-a)
	return diff*parts > b
}
