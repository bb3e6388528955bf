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

// InstanceOptions says what an instance works on.
type InstanceOptions struct {
	// Conn is the connection to NATS; it stays the caller's.
	Conn *bus.Conn
	// Redis stands before the ledger when tokens are spent; nil: the ledger keeps
	// them alone.
	Redis *confirm.RedisOptions
	// Name is what the operator calls this process; its audit lines bear it.
	Name string
	// Sign, Assess, NoPermission, Runner: see [Options].
	Sign         func(*ledger.Approval) ([]byte, error)
	Assess       AssessFunc
	NoPermission func(server schema.ServerID) string
	Runner       string
	// Policy assesses held calls where Assess is nil, with what their records say of
	// servers; nil: nothing is assessed here.
	Policy *risk.Holder
	// AuditAge is how long audit lines are kept; 0 is for ever. It counts when the
	// audit record is made.
	AuditAge time.Duration
	// LostBefore: see [ledger.Options].
	LostBefore time.Time
	// DataKeys encrypt what is stored of calls; nil: nothing is encrypted.
	DataKeys *datakey.Ring
	// Retention: see [ledger.Options].
	Retention retention.Periods
	// Traces: see [Options].
	Traces *telemetry.Traces
	// Log receives what cannot be told to a caller. It must be set.
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

// OpenInstance opens the ledger, the audit record and the tokens; ctx bounds that.
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
	if r.Audit, err = audit.Open(ctx, o.Conn, audit.Options{Name: o.Name, MaxAge: o.AuditAge, Log: o.Log}); err != nil {
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

// TokensUp says that confirmation tokens are minted and spent.
func (r *Instance) TokensUp() bool { return r.tokens.Up() }

const (
	// repairEvery is how often what a killed process left undone is looked for.
	// repairFirst is how far that goes back after the start.
	repairEvery = 2 * time.Minute
	repairFirst = 24 * time.Hour
	repairFor   = time.Minute
)

// repair puts audit lines back that another process could not write before it was
// killed, and makes the permissions that it had promised.
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
		// Processes that started together need not all look at once.
		next := time.NewTimer(repairEvery + rand.N(repairEvery/2))
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return
		}
	}
}

// Close ends the instance. What was to be written to the audit record is written
// first, as long as NATS takes it.
func (r *Instance) Close() {
	r.stop()
	r.work.Wait()
	r.Audit.Close()
	r.tokens.Close()
	r.Ledger.Close()
}
