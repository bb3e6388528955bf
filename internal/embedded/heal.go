package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// healEvery is the interval of the check whether JetStream can write.
	healEvery = time.Second
	// healSpace is the free space required before JetStream is restarted, in bytes.
	healSpace = 1 << 20
)

// heal restarts JetStream after a failed write to a stream as soon as the disk has free space,
// because JetStream keeps the error of a stream until it is restarted. Connections, and everything
// that does not need JetStream, continue to work.
func (s *Server) heal() {
	defer close(s.healed)
	tick := time.NewTicker(healEvery)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
		}
		why := s.broken()
		if why == "" {
			said = ""
			continue
		}
		if err := s.space(); err != nil {
			if said != why {
				s.log.Error("durable calls and approvals cannot be stored: free disk space; they then continue automatically", "data", s.dir, "reason", why, "error", err)
				said = why
			}
			continue
		}
		if err := s.again(); err != nil {
			s.log.Error("JetStream cannot be restarted; retrying", "error", err)
			continue
		}
		s.log.Info("JetStream was restarted after a failed write", "data", s.dir, "reason", why)
	}
}

// broken returns the reason why JetStream cannot store, or "" if it can.
func (s *Server) broken() string {
	if !s.s.JetStreamEnabled() {
		return "JetStream is not running"
	}
	for _, e := range s.s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		// A restart does not repair a stream that cannot be read.
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error") {
			return e.Error
		}
	}
	return ""
}

// space returns an error if less than healSpace bytes are free.
func (s *Server) space() error {
	f, err := os.CreateTemp(s.dir, "room-*")
	if err != nil {
		return fmt.Errorf("checking disk space: %w", err)
	}
	_, err = f.Write(make([]byte, healSpace))
	err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
	if err != nil {
		return fmt.Errorf("checking disk space: %w", err)
	}
	return nil
}

// again stops JetStream, which clears its errors, and starts it.
func (s *Server) again() error {
	if err := s.s.ShutdownJetStream(); err != nil {
		return fmt.Errorf("stopping JetStream: %w", err)
	}
	cfg := s.jetstream
	cfg.StoreDir = filepath.Dir(cfg.StoreDir) // the server adds the last folder
	if err := s.s.EnableJetStream(&cfg); err != nil {
		return fmt.Errorf("starting JetStream: %w", errors.Join(err, s.s.ShutdownJetStream()))
	}
	return nil
}
