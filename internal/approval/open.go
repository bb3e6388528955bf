package approval

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// InstanceOptions configures an [Instance].
type InstanceOptions struct {
	// Conn is the connection to NATS. The caller owns it.
	Conn *bus.Conn
	// Redis is checked before the ledger when tokens are spent. If nil, only the ledger is.
	Redis *confirm.RedisOptions
	// ByID reports whether the caller of a held call confirms it by its id, without a token. If
	// it is set, tokens of other calls that Redis has lost are logged.
	ByID func(schema.CallID) bool
	// Name is the operator's name for this process. It appears in audit entries.
	Name string
	// Sign, Assess, NoPermission, Runner: see [Options].
	Sign         func(*ledger.Approval) ([]byte, error)
	Assess       AssessFunc
	NoPermission func(server schema.ServerID) string
	Runner       string
	// Policy assesses held calls if Assess is nil, using the properties of servers in the
	// records. If nil, calls are not assessed here.
	Policy *risk.Holder
	// LostBefore: see [ledger.Options].
	LostBefore time.Time
	// DataKeys encrypts the stored data of calls. If nil, nothing is encrypted.
	DataKeys *datakey.Ring
	// Retention: see [ledger.Options].
	Retention retention.Periods
	// Traces: see [Options].
	Traces *telemetry.Traces
	// Log receives errors that cannot be returned to a caller. It must be set.
	Log *slog.Logger
}

// Instance is a desk with its ledger, audit record and tokens, for one process.
type Instance struct {
	Desk   *Desk
	Ledger *ledger.Ledger
	Audit  *audit.Log

	tokens *confirm.Tokens
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// OpenInstance opens the ledger, the audit record and the tokens. ctx limits the time to open.
func OpenInstance(ctx context.Context, o InstanceOptions) (*Instance, error) {
	book, err := ledger.Open(ctx, o.Conn, ledger.Options{LostBefore: o.LostBefore, DataKeys: o.DataKeys, Retention: o.Retention, Log: o.Log})
	if err != nil {
		return nil, err
	}
	var gate *confirm.Redis
	if o.Redis != nil {
		redis := *o.Redis
		redis.Log = o.Log
		if gate, err = confirm.OpenRedis(ctx, redis); err != nil {
			book.Close()
			return nil, err
		}
	}
	r := &Instance{Ledger: book, tokens: confirm.New(book, gate)}
	if o.ByID != nil {
		r.tokens.Watch(func(a *ledger.Approval) bool { return !o.ByID(a.CallID) && ByCaller(a) })
	}
	if r.Audit, err = audit.Open(ctx, o.Conn, audit.Options{Name: o.Name, Log: o.Log}); err != nil {
		r.tokens.Close()
		book.Close()
		return nil, err
	}
	if o.Assess == nil && o.Policy != nil {
		o.Assess = byPolicy(book, o.Policy)
	}
	r.Desk = New(Options{Assess: o.Assess, NoPermission: o.NoPermission, Ledger: book, Tokens: r.tokens, Sign: o.Sign, Runner: o.Runner, Audit: r.Audit, Traces: o.Traces, Log: o.Log})
	watching, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.work.Go(func() { r.repair(watching, o.Log) })
	return r, nil
}

// TokensUp reports whether confirmation tokens can be minted and spent.
func (r *Instance) TokensUp() bool { return r.tokens.Up() }

const (
	// repairEvery is the interval between repairs of the unfinished work of killed processes.
	// repairFirst is the period that the first repair after the start covers.
	repairEvery = 2 * time.Minute
	repairFirst = 24 * time.Hour
	repairFor   = time.Minute
)

// repair restores the audit entries and the permissions that another process could not
// write before it was killed.
func (r *Instance) repair(ctx context.Context, log *slog.Logger) {
	back := repairFirst
	for {
		once, cancel := context.WithTimeout(ctx, repairFor)
		n, err := r.Desk.Repair(once, back)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if back = 3 * repairEvery; err != nil {
			back = repairFirst
			log.Warn("looking for the unfinished work of a lost process failed", "error", err)
		} else if n > 0 {
			log.Info("audit lines that a lost process had not written were restored", "lines", n)
		}
		// Add jitter, so that processes started at the same time do not all repair at once.
		next := time.NewTimer(repairEvery + rand.N(repairEvery/2))
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return
		}
	}
}

// Close closes the instance. It first writes the queued audit entries, as long as NATS accepts
// them.
func (r *Instance) Close() {
	r.stop()
	r.work.Wait()
	r.Audit.Close()
	r.tokens.Close()
	r.Ledger.Close()
}
