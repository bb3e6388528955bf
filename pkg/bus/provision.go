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

// Provision makes every stream and table of the lists that is missing, those of roles and
// features that are not in use among them: at run time no role may make one. The
// connection must have been opened with [Options.Provision]. It may be called again at any
// time, and by several processes at once; ctx bounds it. A cluster whose servers have not
// all come up is waited for.
func Provision(ctx context.Context, c *Conn, streams []StreamSpec, tables []TableSpec) error {
	for _, spec := range streams {
		if err := patiently(ctx, c, func() error {
			_, err := OpenStream(ctx, c, spec)
			return err
		}); err != nil {
			return err
		}
	}
	for _, spec := range tables {
		if err := patiently(ctx, c, func() error {
			_, err := OpenBucket(ctx, c, spec)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// patiently repeats open while the cluster comes up, until ctx ends.
func patiently(ctx context.Context, c *Conn, open func() error) error {
	for {
		err := open()
		if err == nil || ctx.Err() != nil || !comingUp(err) {
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

// comingUp reports whether an error of JetStream may end by itself while a cluster comes
// up: it lacks servers for the replicas or a leader (code 503), or the connection moved to
// another server before the answer.
func comingUp(err error) bool {
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
	c.log.Log(context.Background(), level, "created missing streams and tables", what, name, "replicas", c.replicas)
}

// errMissing says that something must be made that no role may make.
func errMissing(what, name, of string) error {
	return fmt.Errorf("the %s %s (%s) does not exist in NATS: create it with `callyard init`, as the NATS user operator (docs/how-to/deployment.md)", what, name, of)
}
