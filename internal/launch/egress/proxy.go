package egress

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/addresses"
	"github.com/callyard/callyard/internal/kit/truncate"
)

const (
	headerTime = 10 * time.Second
	idleTime   = time.Minute
	dialTime   = 10 * time.Second
	mostHeader = 16 << 10
	mostLogged = 100 // logged decisions per proxy, each once; all are counted
)

// Options configure a [Proxy].
type Options struct {
	Server string // the server of the sandbox, for the log
	List   List
	// Decided is called concurrently for each decision. It may be nil.
	Decided func(allowed bool)
	// Resolver resolves names. If nil, the default resolver is used.
	Resolver *net.Resolver
	Log      *slog.Logger
}

// Proxy is an HTTP proxy (CONNECT, and requests with an absolute http URL) that connects only to listed
// destinations. It is safe for concurrent use.
type Proxy struct {
	o         Options
	log       *slog.Logger
	server    *http.Server
	transport *http.Transport
	forward   *httputil.ReverseProxy
	ctx       context.Context
	cancel    context.CancelFunc

	mu      sync.Mutex
	closed  bool
	tunnels map[net.Conn]struct{}
	logged  map[decision]struct{}
	work    sync.WaitGroup // Serve calls and requests
}

// decision is a decision about a destination.
type decision struct {
	host    string
	port    uint16
	allowed bool
}

// New returns a Proxy that does not serve yet. The caller must close it.
func New(o Options) *Proxy {
	p := &Proxy{o: o, log: o.Log.With("server", o.Server), tunnels: make(map[net.Conn]struct{}), logged: make(map[decision]struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.transport = &http.Transport{
		Proxy:                  nil, // another proxy would connect without the guard
		DialContext:            func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, address) },
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConns:           8,
		IdleConnTimeout:        10 * time.Second,
	}
	p.forward = &httputil.ReverseProxy{
		Transport:     p.transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = r.In.URL.Host // the checked host, whatever the header says
			r.Out.Header.Del("Proxy-Authorization")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { p.failed(w, err) },
	}
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeader,
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return p.ctx },
	}
	return p
}

// Serve serves the connections of the listener until it or the Proxy is closed.
func (p *Proxy) Serve(l net.Listener) {
	if !p.begin(nil) {
		return
	}
	defer p.work.Done()
	if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		p.log.Debug("egress ended", "error", err)
	}
}

// begin registers work that Close waits for, and a connection that Close closes.
func (p *Proxy) begin(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if conn != nil {
		p.tunnels[conn] = struct{}{}
	}
	p.work.Add(1)
	return true
}

// Close closes every connection and waits for everything that the Proxy started. It may be called
// more than once.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for conn := range p.tunnels {
		conn.Close()
	}
	p.mu.Unlock()
	p.cancel()
	_ = p.server.Close() // the caller owns the listeners
	p.work.Wait()
	p.transport.CloseIdleConnections()
}

// ServeHTTP handles one request of a sandbox.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.begin(nil) {
		http.Error(w, "the egress is closed", http.StatusServiceUnavailable)
		return
	}
	defer p.work.Done()
	target := r.Host
	if r.Method != http.MethodConnect {
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			http.Error(w, "this is a proxy: send CONNECT, or a request with an absolute http URL", http.StatusBadRequest)
			return
		}
		target = r.URL.Host
		if r.URL.Port() == "" {
			target = net.JoinHostPort(r.URL.Hostname(), "80")
		}
	}
	host, port, ok := split(target)
	if !ok {
		http.Error(w, "the destination has no host with a port", http.StatusBadRequest)
		return
	}
	if _, ok := p.o.List.find(host, port); !ok {
		p.decide(host, port, false, "it is not on the list")
		http.Error(w, "this destination is not on the list of allowed destinations", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.connect(w, r, net.JoinHostPort(host, strconv.Itoa(int(port))))
		return
	}
	p.forward.ServeHTTP(w, r)
}

func split(target string) (host string, port uint16, ok bool) {
	host, text, err := net.SplitHostPort(target)
	n, numErr := strconv.ParseUint(text, 10, 16)
	return host, uint16(n), err == nil && numErr == nil && host != "" && n != 0
}

// dial connects to a listed destination. It checks the list again, so that a request that passed an
// earlier check by mistake is still refused.
func (p *Proxy) dial(ctx context.Context, address string) (net.Conn, error) {
	host, port, ok := split(address)
	at, listed := p.o.List.find(host, port)
	if !ok || !listed {
		return nil, errAddress
	}
	own, err := addresses.Own()
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTime, Resolver: p.o.Resolver, Control: addresses.Control(errAddress, func(ip netip.AddrPort) error { return safe(ip.Addr(), at.private, own) })}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(normal(host), strconv.Itoa(int(port))))
	if errors.Is(err, errAddress) {
		p.decide(host, port, false, "its address is not allowed")
	} else {
		p.decide(host, port, true, "")
	}
	return conn, err
}

// decide counts a decision, and logs it if it is the first for the destination: a sandbox can repeat
// its requests without end.
func (p *Proxy) decide(host string, port uint16, allowed bool, why string) {
	if p.o.Decided != nil {
		p.o.Decided(allowed)
	}
	host = truncate.Head(host, mostName)
	switch {
	case !p.isNew(decision{host, port, allowed}):
	case allowed:
		p.log.Info("a sandbox connects to an allowed destination", "host", host, "port", port)
	default:
		p.log.Warn("a sandbox is not allowed to reach this destination", "host", host, "port", port, "reason", why)
	}
}

// isNew reports whether a decision is to be logged, once.
func (p *Proxy) isNew(d decision) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.logged[d]; known || len(p.logged) >= mostLogged {
		return false
	}
	p.logged[d] = struct{}{}
	return true
}

func (p *Proxy) failed(w http.ResponseWriter, err error) {
	if errors.Is(err, errAddress) {
		http.Error(w, "the address of this destination is not allowed", http.StatusForbidden)
		return
	}
	http.Error(w, "the destination cannot be reached", http.StatusBadGateway)
}

// connect connects the sandbox with a destination.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request, address string) {
	there, err := p.dial(r.Context(), address)
	if err != nil {
		p.failed(w, err)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "the connection cannot be established", http.StatusInternalServerError)
		return
	}
	defer here.Close()
	_ = here.SetDeadline(time.Time{}) // remove the deadline for the header
	for _, conn := range []net.Conn{here, there} {
		if !p.begin(conn) {
			return
		}
		defer func() {
			p.mu.Lock()
			delete(p.tunnels, conn)
			p.mu.Unlock()
			p.work.Done()
		}()
	}
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(there, buffered.Reader) // an error ends the connection, like an EOF
		there.Close()                          // a forwarder does not half-close a connection
	})
	both.Go(func() {
		_, _ = io.Copy(here, there)
		here.Close()
	})
	both.Wait()
}
