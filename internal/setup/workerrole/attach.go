package workerrole

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/worker"
)

// attachListener accepts programs that attach to a worker. The zero value does not listen.
type attachListener struct {
	server *http.Server
	work   sync.WaitGroup
}

// start starts to listen if the section is configured. ctx limits the time to open the listener.
func (a *attachListener) start(ctx context.Context, c *settings.Attach, w *worker.Worker, log *slog.Logger) error {
	if c.Listen == "" {
		return nil
	}
	l, err := listen.Open(ctx, c.Listen, listen.TLS{Cert: c.CertFile, Key: c.KeyFile}, log)
	if err != nil {
		return fmt.Errorf("listening at worker.attach.listen: %w", err)
	}
	var draining atomic.Bool // a stopping worker refuses programs itself
	a.server = listen.NewServer(w.AttachHandler(), &draining, log)
	failed := make(chan error, 1)
	a.work.Go(func() {
		listen.Serve(a.server, l, c.Listen, failed)
		select {
		case err := <-failed:
			log.Error("programs cannot attach any more", "error", err)
		default:
		}
	})
	log.Info("listening for programs that attach", "address", l.Addr().String(), "tls", c.CertFile != "")
	return nil
}

// stop closes the listener. The worker has already closed the connections of attached programs.
func (a *attachListener) stop() {
	if a.server == nil {
		return
	}
	_ = a.server.Close() // remaining connections are refused or idle
	a.work.Wait()
}
