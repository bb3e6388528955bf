package setup

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// heapGrows is how much a small heap grows before it is collected, in percent of
	// what lives, and heapRoom the most that it grows by: with a batch of a million
	// calls more lives, and five times that would be memory for nothing.
	heapGrows      = 400
	heapGrowsLeast = 50
	heapRoom       = 48 << 20
	// serverRoom is the room that each server brings: what its sessions keep is looked
	// through at each collection, so with hundreds of them there had better be few. Their
	// processes take many times that.
	serverRoom = 512 << 10
	liveBytes  = "/gc/heap/live:bytes"
)

// TuneRuntime lets a small heap grow to five times what lives before it is collected:
// collecting it less often saves a tenth of the CPU time of a call. GOGC in the
// environment wins. A process of several parts gives it more room: share is how many
// times that of one. So does one that holds many servers.
func TuneRuntime(share, servers int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(heapGrows)
	(&heapWatch{percent: heapGrows, room: uint64(share)*heapRoom + uint64(servers)*serverRoom}).again()
}

// LeaveProcessors keeps the Go code of this process to half of its processors, rounded
// up: a worker's tools run beside it and take far more time than it does, and its
// threads would look for work on processors that they could use. On two cores three
// processes do a twentieth more calls so. GOMAXPROCS in the environment wins.
func LeaveProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS((runtime.GOMAXPROCS(0) + 1) / 2)
	}
}

// heapWatch looks at the heap after each collection: its finalizer is how the runtime
// tells of one.
type heapWatch struct {
	percent int
	room    uint64
	_       *int // the runtime may forget about the finalizers of small things without pointers
}

func (w *heapWatch) again() {
	runtime.SetFinalizer(&heapWatch{percent: w.percent, room: w.room}, func(w *heapWatch) {
		sample := []metrics.Sample{{Name: liveBytes}}
		metrics.Read(sample)
		if live := sample[0].Value.Uint64(); live > 0 {
			percent := int(min(max(w.room*100/live, heapGrowsLeast), heapGrows))
			if diff := percent - w.percent; diff*diff*100 > w.percent*w.percent {
				w.percent = percent
				debug.SetGCPercent(percent)
			}
		}
		w.again()
	})
}
