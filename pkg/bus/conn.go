package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options says how to reach NATS.
type Options struct {
	// URL of the server or, with commas, of the cluster; unused with InProcess.
	URL string
	// InProcess, when set, gives connections to a server inside this process.
	InProcess nats.InProcessConnProvider
	// Name is shown in the server's monitoring: the role and its id.
	Name string
	// Role, when set, is the [Role] whose inboxes the connection is answered on.
	Role string
	// CredentialsFile, NKeySeedFile, User with Password, and Token are the ways
	// of NATS to sign in; at most one is set.
	CredentialsFile string
	NKeySeedFile    string
	User, Password  string
	Token           string
	// TLS, when set, is how the server and the connection prove themselves.
	TLS *tls.Config
	// KeepWhileDown keeps what is published while the connection is down, up to
	// 32 MiB, and sends it when the connection stands again. Workers want that for
	// their results; routers do not, because a call that leaves minutes late is
	// worse than an error now.
	KeepWhileDown bool
	// Replicas is how many servers of a cluster keep each table that is made; 0
	// means 1. Tables that exist are left as they are.
	Replicas int
	// Provision lets the connection make streams and tables that are missing where
	// NATS asks for a credential; see [Provision].
	Provision bool
	// Local, when set, joins the connections of this process; see [Local].
	Local *Local
	// Log receives connection events. It must be set.
	Log *slog.Logger
}

// Conn is one connection to NATS. It reconnects for ever by itself. All methods
// are safe for concurrent use.
type Conn struct {
	nc    *nats.Conn
	local *Local

	replicas  int
	provision bool
	js        jetstream.JetStream
	log       *slog.Logger
	closed    chan struct{}
	again     hooks

	unexpected atomic.Pointer[func(reason string)]

	writes writes

	clustered atomic.Bool
	links     atomic.Int64
	remade    atomic.Int64 // when it was last made again, unix ns; 0: never
	stop      context.CancelFunc
	wait      sync.WaitGroup
}

// connectTimeout bounds one attempt to reach a server.
const connectTimeout = 5 * time.Second

// writeTimeout bounds one write to a server.
const writeTimeout = 5 * time.Second

// minPayload is the smallest max_payload of a server that works: the heads of messages,
// announcements and parts of results fit, and arguments of 48 KiB.
const minPayload = 64 << 10

// readQueue is more messages than one read of a log asks for.
const readQueue = 1 << 10

// Connect opens a connection and waits until it stands or ctx ends. The error
// names the address and the fix.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	c := &Conn{log: o.Log, local: o.Local, replicas: max(o.Replicas, 1), provision: o.Provision, closed: make(chan struct{})}
	c.writes.open(c)
	said := &faults{log: o.Log}
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		// A credential that is refused now may be accepted again: the server has restarted with
		// other users, or reads them later. By default the second refusal is the end.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 500*time.Millisecond),
		// A dead peer is noticed within seconds, not minutes.
		nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2),
		// One that takes no bytes any more holds up everything of the connection while
		// they wait, pings and a move to another server among it.
		nats.FlusherTimeout(writeTimeout),
		nats.ReconnectOnFlusherError(),
		nats.ReconnectBufSize(reconnectBuffer(o.KeepWhileDown)),
		// Each read of a log makes a subscription, and what that may hold is allocated at
		// once: half a megabyte by default.
		nats.SyncQueueLen(readQueue),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Log.Warn("connection to NATS lost; reconnecting", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			o.Log.Info("connection to NATS restored", "server", nc.ConnectedUrlRedacted())
			said.again()
			c.servers(nc)
			c.links.Add(1)
			c.remade.Store(time.Now().UnixNano())
			c.again.run()
		}),
		nats.DiscoveredServersHandler(c.servers),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			said.report(subject, err)
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	if o.Role != "" {
		opts = append(opts, nats.CustomInboxPrefix(inbox+o.Role))
	}
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(o.InProcess))
	}
	auth, err := authOptions(o)
	if err != nil {
		return nil, err
	}
	opts = append(opts, auth...)
	if deadline, ok := ctx.Deadline(); ok {
		opts = append(opts, nats.Timeout(min(connectTimeout, time.Until(deadline))))
	}
	if c.nc, err = nats.Connect(o.URL, opts...); err != nil {
		return nil, fmt.Errorf("connecting to NATS at %s: %w; %s", redactURL(o), err, fixOf(err))
	}
	if most := c.MaxPayload(); most < minPayload {
		c.Close()
		return nil, fmt.Errorf("connecting to NATS at %s: the server takes messages of at most %d bytes, and Callyard requires %d: raise max_payload of the NATS server", redactURL(o), most, minPayload)
	}
	c.servers(c.nc)
	if c.js, err = jetstream.New(c.nc); err != nil {
		c.Close()
		return nil, fmt.Errorf("preparing JetStream: %w", err)
	}
	if o.InProcess == nil && o.Role != "" {
		roaming, stop := context.WithCancel(context.Background())
		c.stop = stop
		if err := c.roam(roaming, o.Role); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

func authOptions(o Options) ([]nats.Option, error) {
	var opts []nats.Option
	if o.CredentialsFile != "" {
		opts = append(opts, nats.UserCredentials(o.CredentialsFile))
	}
	if o.NKeySeedFile != "" {
		opt, err := nats.NkeyOptionFromSeed(o.NKeySeedFile)
		if err != nil {
			return nil, fmt.Errorf("reading the NATS key seed %s: %w", o.NKeySeedFile, err)
		}
		opts = append(opts, opt)
	}
	if o.User != "" {
		opts = append(opts, nats.UserInfo(o.User, o.Password))
	}
	if o.Token != "" {
		opts = append(opts, nats.Token(o.Token))
	}
	if o.TLS != nil {
		opts = append(opts, nats.Secure(o.TLS))
	}
	return opts, nil
}

func reconnectBuffer(keep bool) int {
	if keep {
		return 32 << 20
	}
	return -1
}

func redactURL(o Options) string {
	if o.InProcess != nil {
		return "the embedded server"
	}
	if o.URL == "" {
		return nats.DefaultURL
	}
	return o.URL
}

// MaxPayload is the largest message the server takes, in bytes.
func (c *Conn) MaxPayload() int { return int(c.nc.MaxPayload()) }

// Ready returns nil while the connection stands, else an error that says what
// is missing.
func (c *Conn) Ready() error {
	if s := c.nc.Status(); s != nats.CONNECTED {
		if refused(c.nc.LastError()) {
			return fmt.Errorf("NATS is %s, because it refuses the credential of this process", s)
		}
		return fmt.Errorf("NATS is %s", s)
	}
	return nil
}

// Flush waits until the server has seen everything published so far, at most
// until ctx ends or, when that has no deadline, 5 s.
func (c *Conn) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return c.nc.FlushWithContext(ctx)
}

// Close closes the connection and waits for its callbacks to end. What was
// published before is written out first, as far as the server takes it.
func (c *Conn) Close() {
	if c.stop != nil {
		c.stop()
	}
	c.wait.Wait()
	c.writes.close()
	if !c.nc.IsClosed() {
		if err := c.nc.FlushTimeout(time.Second); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			c.log.Debug("flushing before close", "error", err)
		}
		c.nc.Close()
	}
	<-c.closed
}
