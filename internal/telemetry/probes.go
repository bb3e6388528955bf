package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Probes serves /livez, /readyz and /metrics of a process without an API.
type Probes struct {
	server *http.Server
	addr   net.Addr
	wait   sync.WaitGroup
}

// ServeProbes listens on the address until Close. ready returns the reason why the process is not
// ready, or nil; it must be fast. A response that is not ready asks for a retry after one second.
func ServeProbes(listen string, m *Metrics, ready func() error, log *slog.Logger) (*Probes, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listening for probes on %s: %w", listen, err)
	}
	p := &Probes{addr: l.Addr(), server: &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	p.wait.Go(func() {
		if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the probes ended", "error", err)
		}
	})
	return p, nil
}

// Addr returns the address of the probes.
func (p *Probes) Addr() string { return p.addr.String() }

// Close stops serving and waits for requests in progress until ctx ends.
func (p *Probes) Close(ctx context.Context) error {
	err := p.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("closing the probes: %w", err), p.server.Close())
	}
	p.wait.Wait()
	return err
}
