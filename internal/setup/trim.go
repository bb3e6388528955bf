package setup

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/callyard/callyard/internal/lifecycle"
)

const (
	// trimEvery is the interval of idle checks. idleBytes is the maximum that an idle process allocates
	// in that time, for announcements, metrics and a few calls.
	trimEvery = 5 * time.Second
	idleBytes = 4 << 20
	// trimLeast is the minimum of memory worth returning: a collection takes about 20 ms of CPU time.
	trimLeast = 8 << 20

	allocatedBytes = "/gc/heap/allocs:bytes"
	objectBytes    = "/memory/classes/heap/objects:bytes"
	freeBytes      = "/memory/classes/heap/free:bytes"
	unusedBytes    = "/memory/classes/heap/unused:bytes"
)

// TrimPart returns memory to the operating system while the process is idle. The heap may grow to a
// multiple of the live heap before a collection ([TuneRuntime]). An idle process would not reach
// that for hours and would keep the memory of its start and of the last load.
func TrimPart() lifecycle.Part {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	return lifecycle.Part{
		Name: "memory",
		Start: func(context.Context) error {
			go func() {
				defer close(done)
				trim(ctx, readHeap, releaseMemory)
			}()
			return nil
		},
		Stop: func(context.Context) error {
			stop()
			<-done
			return nil
		},
	}
}

// releaseMemory collects the heap and returns free memory and pages of the program that were needed
// only once.
func releaseMemory() {
	debug.FreeOSMemory()
	dropProgram()
}

// heapUse is the number of bytes that the heap has allocated since the start, and the number that
// it holds from the operating system: live and dead objects, and free memory that it keeps.
type heapUse struct{ allocated, kept uint64 }

func readHeap() heapUse {
	sample := []metrics.Sample{{Name: allocatedBytes}, {Name: objectBytes}, {Name: freeBytes}, {Name: unusedBytes}}
	metrics.Read(sample)
	var use heapUse
	for i := range sample {
		if n := sample[i].Value.Uint64(); i == 0 {
			use.allocated = n
		} else {
			use.kept += n
		}
	}
	return use
}

// trim calls give in idle moments until ctx ends. It skips the call if the heap has not grown since
// the last one, because nothing would be returned.
func trim(ctx context.Context, read func() heapUse, give func()) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	last, least := read().allocated, uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := read()
		if now.allocated-last <= idleBytes && now.kept >= least+trimLeast {
			give()
			now = read()
			least = now.kept
		}
		last = now.allocated
	}
}
