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
	// healEvery is how often it is looked whether JetStream can write.
	healEvery = time.Second
	// healSpace must fit on the disk before JetStream is started again.
	healSpace = 1 << 20
)

// heal starts JetStream again after a stream could not be written, once there is room on
// the disk: JetStream keeps the error of a stream for as long as it runs. Connections, and
// everything that does not need JetStream, keep working meanwhile.
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

// broken says why JetStream cannot store, "" where it can.
func (s *Server) broken() string {
	if !s.s.JetStreamEnabled() {
		return "JetStream is not running"
	}
	for _, e := range s.s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		// One that cannot be read is not repaired by another start.
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error") {
			return e.Error
		}
	}
	return ""
}

// space returns an error while healSpace bytes do not fit on the disk.
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

// again stops JetStream, which forgets its errors, and starts it.
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
