package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Retention says how long streams keep what is in them. It counts when a stream is
// made; those that exist stay as they are.
type Retention struct {
	Ledger     LedgerOptions
	Journals   JournalOptions
	Executions ExecutionsOptions
	// Audit is how long audit records are kept, 0 for ever; Deliveries is how long a
	// webhook's delivery is kept after it was last written.
	Audit, Deliveries time.Duration
	// Tables are those of stores outside this package.
	Tables []TableSpec
}

// streams are the configurations of all streams, tables those of all tables.
func (r Retention) streams(replicas int) []jetstream.StreamConfig {
	j := journalStreams(r.Journals, replicas)
	return []jetstream.StreamConfig{
		ledgerStream(r.Ledger, replicas), heldStream(r.Ledger, replicas), auditStream(r.Audit, replicas), executionsStream(r.Executions, replicas),
		deliveriesStream(streamDeliveries, subjectDelivery, r.Deliveries, replicas), deliveriesStream(streamNoticeDeliveries, subjectNotice, r.Deliveries, replicas),
		j.state, j.calls, j.intents, j.results, j.objects, j.keys,
	}
}

func (r Retention) tables() []jetstream.KeyValueConfig {
	all := []jetstream.KeyValueConfig{headsTable, permissionsTable, switchesTable, serversTable, sessionsTable}
	for _, spec := range r.Tables {
		all = append(all, spec.config())
	}
	return all
}

// Provision makes every stream and table that is missing, those of roles and features
// that are not in use among them: at run time no role may make one. The connection
// must have been opened with [Options.Provision]. It may be called again at any time,
// and by several processes at once; ctx bounds it. A cluster whose servers have not all
// come up is waited for.
func (c *Conn) Provision(ctx context.Context, r Retention) error {
	for _, want := range r.streams(c.replicas) {
		open := func() error {
			_, err := openStream(ctx, c, want)
			return err
		}
		if want.Name == streamExecutions {
			open = func() error {
				_, err := OpenExecutions(ctx, c, r.Executions)
				return err
			}
		}
		if err := c.patiently(ctx, open); err != nil {
			return err
		}
	}
	for _, want := range r.tables() {
		if err := c.patiently(ctx, func() error {
			_, err := openBucket(ctx, c, want)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// codeNoPeers is JetStream's for a cluster that has not got the servers for the
// replicas: it may be coming up (JSClusterNoPeersErrF).
const codeNoPeers jetstream.ErrorCode = 10005

// patiently repeats open while the cluster lacks servers, until ctx ends.
func (c *Conn) patiently(ctx context.Context, open func() error) error {
	for {
		err := open()
		var api *jetstream.APIError
		if !errors.As(err, &api) || api.ErrorCode != codeNoPeers {
			return err
		}
		c.log.Warn("the NATS cluster lacks servers for the replicas; trying again", "replicas", c.replicas, "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// provisions says whether this connection makes streams and tables that are missing.
// Where NATS asks for no credential there are no roles, and whoever comes first makes
// them.
func (c *Conn) provisions() bool { return c.provision || !c.nc.AuthRequired() }

// made tells of a stream or table that was made.
func (c *Conn) made(what, name string) {
	level := slog.LevelDebug
	if c.provision { // it is what the process is there for
		level = slog.LevelInfo
	}
	c.log.Log(context.Background(), level, "made what was missing", what, name, "replicas", c.replicas)
}

// errMissing says that something must be made that no role may make.
func errMissing(what, name, of string) error {
	return fmt.Errorf("the %s %s (%s) does not exist in NATS: make what is missing with `callyard init`, as the user operator of NATS; docs/deployment.md shows it", what, name, of)
}
