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

// Options says what a runner stands on. Those without a default are required.
type Options struct {
	Store   *journal.Store
	Gate    *admission.Gate  // checks calls
	Chain   *execution.Chain // runs them
	Catalog *catalog.Catalog
	Router  *dispatch.Router
	// Ledger has the approvals of calls that are held; Desk takes such calls back.
	Ledger *ledger.Ledger
	Desk   *approval.Desk
	// Release runs a call whose approval this front door has claimed; when ctx has
	// ended it does not wait for the end. Batches have no use for progress.
	Release func(ctx context.Context, a *ledger.Approval, progress func(params []byte)) (*schema.Result, error)
	// Quota limits how much of a principal's may wait; without it nothing does.
	Quota *quota.Quota
	// ID is this front door.
	ID string
	// Ended is told of each call with a callback, and each batch, that ended, once
	// that is stored; after a crash perhaps again. It may wait where too much is to
	// be told.
	Ended func(End)
	// LeaseLost, where set, is told of each journal that another front door has now.
	LeaseLost func()
	// Traces makes spans of calls that are stored and of a share of those of batches;
	// nil: there are none.
	Traces *telemetry.Traces
	Log    *slog.Logger

	// Window is how many calls of one journal may be under way (512), and
	// WindowBytes how much their arguments may take (32 MiB).
	Window      int
	WindowBytes int64
	// OpenBatches is how many batches all front doors together may have that have not
	// ended (2,000): each takes memory and a lease, also where nothing of it runs.
	OpenBatches int
	// Attempts is how often a call that is safe to repeat is tried (3).
	Attempts int
	// Patience is how long a call waits for its server to be there (10 min).
	Patience time.Duration
	// KeepCalls is how long the calls of an ended batch are kept, to be read and
	// tried again (24 h).
	KeepCalls time.Duration
	// LostBefore is when a loss of records of durable calls was accepted: calls of older
	// journals that have no result end as unknown. Zero: nothing was lost.
	LostBefore time.Time
	// LaneCalls and LaneAge are when a lane is followed by a new one: 20,000 calls,
	// 6 h. What is looked for in a lane is read through.
	LaneCalls uint64
	LaneAge   time.Duration
	// Lifetime is how long a single durable call may wait to leave (24 h).
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
		o.Ended = func(End) {}
	}
}

// End is a durable call that ended, or a batch that did.
type End struct {
	// Call and Result are of a call; Result holds its body where that is small.
	Call   *journal.CallRecord
	Result *journal.ResultRecord
	// Batch is the manifest of a batch that ended.
	Batch *journal.Manifest
	// CallID, Journal and Principal are of either.
	CallID    schema.CallID
	Journal   schema.BatchID
	Principal schema.Principal
}

// bound is a context for a write that must not hang.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, writeTimeout)
}

const writeTimeout = 10 * time.Second
