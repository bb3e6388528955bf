package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Provision creates every missing stream and table of the lists, including those of roles and
// features that are not in use, because no role may create one at run time. The connection must
// have been opened with [Options.Provision]. Provision may be called again at any time, and
// concurrently by several processes. It waits for all servers of a cluster to start, until ctx
// ends.
func Provision(ctx context.Context, c *Conn, streams []StreamSpec, tables []TableSpec) error {
	for _, spec := range streams {
		if err := retryWhileStarting(ctx, c, func() error {
			_, err := OpenStream(ctx, c, spec)
			return err
		}); err != nil {
			return err
		}
	}
	for _, spec := range tables {
		if err := retryWhileStarting(ctx, c, func() error {
			_, err := OpenBucket(ctx, c, spec)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// retryWhileStarting repeats open while the cluster starts, until ctx ends.
func retryWhileStarting(ctx context.Context, c *Conn, open func() error) error {
	for {
		err := open()
		if err == nil || ctx.Err() != nil || !isStarting(err) {
			return err
		}
		c.log.Warn("the NATS cluster cannot create streams yet; retrying", "replicas", c.replicas, "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// isStarting reports whether an error of JetStream may be temporary while a cluster starts: the
// cluster lacks a leader or servers for the replicas (code 503), or the connection moved to
// another server before the response.
func isStarting(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503
	}
	for _, transient := range []error{nats.ErrDisconnected, nats.ErrNoResponders, nats.ErrTimeout, context.DeadlineExceeded} {
		if errors.Is(err, transient) {
			return true
		}
	}
	return false
}

// provisions reports whether this connection creates missing streams and tables. If NATS requires
// no credential, there are no roles, and the first process creates them.
func (c *Conn) provisions() bool { return c.provision || !c.nc.AuthRequired() }

// logCreated logs that a stream or table was created.
func (c *Conn) logCreated(what, name string) {
	level := slog.LevelDebug
	if c.provision { // it is the purpose of the process
		level = slog.LevelInfo
	}
	c.log.Log(context.Background(), level, "created missing streams and tables", what, name, "replicas", c.replicas)
	if c.replicas == 1 && c.Clustered() && !c.warnedAlone.Swap(true) {
		c.log.Warn("NATS has several servers, and streams and tables are created with one replica: each is not available while its server is down; for three replicas set CALLYARD_NATS_REPLICAS=3, and change those that exist with `nats stream edit --replicas 3`", what, name)
	}
}

// errNotThere is the part of [errMissing] by which it is recognized.
var errNotThere = errors.New("does not exist in NATS")

// errMissing returns the error for a missing stream or table that no role may create.
func errMissing(what, name, of string) error {
	return fmt.Errorf("the %s %s (%s) %w: create it with `callyard init`, as the NATS user operator (docs/how-to/deployment.md)", what, name, of, errNotThere)
}
