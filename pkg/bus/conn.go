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

// Options configures a connection to NATS.
type Options struct {
	// URL is the address of the server, or the comma-separated addresses of a cluster. It is
	// not used with InProcess.
	URL string
	// InProcess, if set, provides connections to a server in this process.
	InProcess nats.InProcessConnProvider
	// Name is shown in the server's monitoring. It consists of the role and its id.
	Name string
	// Role, if set, is the [Role] whose inbox prefix the connection uses for replies.
	Role string
	// CredentialsFile, NKeySeedFile, User with Password, and Token are the authentication
	// methods of NATS. At most one is set.
	CredentialsFile string
	NKeySeedFile    string
	User, Password  string
	Token           string
	// TLS, if set, is the TLS configuration.
	TLS *tls.Config
	// KeepWhileDown buffers published messages while the connection is down, up to 32 MiB,
	// and sends them after the reconnect. Workers use it for their results. Routers do not,
	// because a call that is sent minutes late is worse than an immediate error.
	KeepWhileDown bool
	// Replicas is the number of replicas of each table that is created. 0 means 1. Existing
	// tables are left unchanged.
	Replicas int
	// Provision lets the connection create missing streams and tables if NATS requires
	// credentials; see [Provision].
	Provision bool
	// Local, if set, connects the connections of this process directly; see [Local].
	Local *Local
	// Log receives connection events. It is required.
	Log *slog.Logger
}

// Conn is a connection to NATS. It reconnects automatically and without a limit. All methods
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

	writes  writes
	denials denials

	clustered     atomic.Bool
	warnedAlone   atomic.Bool // of streams with one replica in a cluster
	links         atomic.Int64
	reconnectedAt atomic.Pointer[time.Time] // time of the last reconnect; nil means never
	reconnects    atomic.Uint64             // the client's count at the last run of the handler of reconnects
	stop          context.CancelFunc
	wait          sync.WaitGroup
}

// connectTimeout limits one attempt to connect to a server.
const connectTimeout = 5 * time.Second

// writeTimeout limits one write to a server.
const writeTimeout = 5 * time.Second

// minPayload is the smallest usable max_payload of a server, in bytes: message headers,
// announcements, parts of results, and arguments of 48 KiB fit.
const minPayload = 64 << 10

// readQueue is larger than the number of messages that one read of a log requests.
const readQueue = 1 << 10

// Connect opens a connection. It returns when the connection is established or ctx ends. The
// error contains the address and the fix.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	c := &Conn{log: o.Log, local: o.Local, replicas: max(o.Replicas, 1), provision: o.Provision, closed: make(chan struct{})}
	c.writes.open(c)
	natsFaults := &faults{log: o.Log, fixDenied: fixPermission}
	if o.Provision {
		natsFaults.fixDenied = fixOperator
	}
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		// Retry after an authentication error, because a rejected credential may become valid: the
		// server may have restarted with other users or may reload them. By default nats.go gives
		// up after the second rejection.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 500*time.Millisecond),
		// Detect a dead peer within seconds rather than minutes.
		nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2),
		// A server that accepts no bytes blocks the whole connection, including pings and the move
		// to another server.
		nats.FlusherTimeout(writeTimeout),
		nats.ReconnectOnFlusherError(),
		nats.ReconnectBufSize(reconnectBuffer(o.KeepWhileDown)),
		// Each read of a log creates a subscription, which allocates its queue at once: half a
		// megabyte by default.
		nats.SyncQueueLen(readQueue),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			c.denials.reset()
			if err != nil {
				o.Log.Warn("connection to NATS lost; reconnecting", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			o.Log.Info("connection to NATS restored", "server", nc.ConnectedUrlRedacted())
			natsFaults.again()
			c.servers(nc)
			c.links.Add(1)
			c.reconnectedAt.Store(new(time.Now()))
			c.reconnects.Store(nc.Stats().Reconnects)
			c.again.run()
		}),
		nats.DiscoveredServersHandler(c.servers),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			c.denials.report(err)
			natsFaults.report(subject, err)
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

// MaxPayload returns the maximum message size of the server, in bytes.
func (c *Conn) MaxPayload() int { return int(c.nc.MaxPayload()) }

// Ready returns nil while the connection is up and NATS admits the calls of all servers that are served
// over it, and otherwise an error with the reason.
func (c *Conn) Ready() error {
	if s := c.nc.Status(); s != nats.CONNECTED {
		if refused(c.nc.LastError()) {
			return fmt.Errorf("NATS is %s, because it refuses the credential of this process", s)
		}
		return fmt.Errorf("NATS is %s", s)
	}
	return c.denials.err()
}

// Flush waits until the server has received everything that was published, until ctx ends, or
// for 5 s.
func (c *Conn) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return c.nc.FlushWithContext(ctx)
}

// Close closes the connection and waits for its callbacks to end. Before that it flushes
// published messages, as far as the server accepts them.
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
