package batch

import (
	"context"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Options has the dependencies and limits of a runner. Fields without a default are required.
type Options struct {
	Store   *journal.Store
	Gate    *admission.Gate  // checks calls
	Chain   *execution.Chain // runs calls
	Catalog *catalog.Catalog
	Router  *dispatch.Router
	// Ledger stores the approvals of held calls. Desk requests and cancels them.
	Ledger *ledger.Ledger
	Desk   *approval.Desk
	// Release runs a call whose approval this front door has claimed. If ctx has ended, it does
	// not wait for the end of the call. Batches pass no progress function.
	Release func(ctx context.Context, a *ledger.Approval, progress func(params []byte)) (*schema.Result, error)
	// Quota limits the waiting calls of a principal. If nil, there is no limit.
	Quota *quota.Quota
	// ID is the id of this front door.
	ID string
	// Ended is called for each ended call with a callback, and for each ended batch, after the
	// end is stored, and possibly again after a crash. It may block when its queue is full.
	Ended func(End)
	// LeaseLost, if set, is called for each journal that this front door lost to another one.
	LeaseLost func()
	// Traces creates spans of stored single calls and of a sample of the calls of batches. If
	// nil, there are no spans.
	Traces *telemetry.Traces
	Log    *slog.Logger

	// Window limits the calls of one journal in flight (512), and WindowBytes the size of their
	// arguments (32 MiB).
	Window      int
	WindowBytes int64
	// OpenBatches limits the batches that have not ended, over all front doors (2,000). Each one
	// takes memory and a lease, even if none of its calls runs.
	OpenBatches int
	// Attempts limits the attempts of a call that is safe to repeat (3).
	Attempts int
	// Patience limits the time that a call waits for its server to become available (10 min).
	Patience time.Duration
	// KeepCalls is the time that the calls of an ended batch are kept, so that they can be read
	// and retried (24 h).
	KeepCalls time.Duration
	// LostBefore is the time at which a loss of records of durable calls was accepted. Calls of
	// older journals without a result end as unknown. Zero means that nothing was lost.
	LostBefore time.Time
	// LaneCalls and LaneAge limit the size and the age of a lane (20,000 calls, 6 h), because a
	// lookup in a lane reads all of it.
	LaneCalls uint64
	LaneAge   time.Duration
	// Lifetime limits the time that a single durable call waits to be sent (24 h).
	Lifetime time.Duration
}

func (o *Options) fill() {
	def := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	span := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.Window, 512)
	def(&o.OpenBatches, 2000)
	def(&o.Attempts, 3)
	span(&o.Patience, 10*time.Minute)
	span(&o.KeepCalls, 24*time.Hour)
	span(&o.LaneAge, 6*time.Hour)
	span(&o.Lifetime, 24*time.Hour)
	if o.WindowBytes <= 0 {
		o.WindowBytes = 32 << 20
	}
	if o.LaneCalls == 0 {
		o.LaneCalls = 20_000
	}
	if o.LeaseLost == nil {
		o.LeaseLost = func() {}
	}
	if o.Ended == nil {
		o.Ended = func(e End) {
			if e.Stored != nil {
				e.Stored(true)
			}
		}
	}
}

// End describes an ended durable call or an ended batch.
type End struct {
	// Call and Result are set for a call. Result includes its body if that is small.
	Call   *journal.CallRecord
	Result *journal.ResultRecord
	// Batch is the manifest, set for a batch.
	Batch *journal.Manifest
	// Stored is set for a call, and must be called once: with true when the callback is stored or
	// cannot be sent, with false if it is dropped and the next owner of the journal has to send it.
	// The journal does not end before.
	Stored func(ok bool)
	// CallID, Journal and Principal apply to both.
	CallID    schema.CallID
	Journal   schema.BatchID
	Principal schema.Principal
}

// bound returns a context for a write, with a timeout so that the write cannot hang.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, writeTimeout)
}

const writeTimeout = 10 * time.Second
