package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestProvisioningWaitsForAClusterThatComesUp(t *testing.T) {
	for _, transient := range []error{
		fmt.Errorf("opening a stream: %w", &jetstream.APIError{Code: 503, ErrorCode: 10005, Description: "no suitable peers for placement"}),
		&jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"},
		fmt.Errorf("opening a stream: %w", nats.ErrDisconnected), nats.ErrNoResponders, nats.ErrTimeout,
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			err := retryWhileStarting(t.Context(), &Conn{log: slog.New(slog.DiscardHandler)}, func() error {
				if tries++; tries < 3 {
					return transient
				}
				return nil
			})
			if err != nil || tries != 3 {
				t.Errorf("%v: ended with %v after %d tries", transient, err, tries)
			}
		})
	}
}

func TestProvisioningEndsAtPermanentErrorOrDeadline(t *testing.T) {
	refused := &jetstream.APIError{Code: 400, ErrorCode: 10052}
	tries := 0
	if err := retryWhileStarting(t.Context(), &Conn{log: slog.New(slog.DiscardHandler)}, func() error { tries++; return refused }); !errors.Is(err, refused) || tries != 1 {
		t.Errorf("ended with %v after %d tries", err, tries)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := retryWhileStarting(ended, &Conn{log: slog.New(slog.DiscardHandler)}, func() error { return nats.ErrDisconnected }); !errors.Is(err, nats.ErrDisconnected) {
		t.Errorf("ended with %v", err)
	}
}

func TestOneReplicaInAClusterIsReportedOnce(t *testing.T) {
	const warning = "CALLYARD_NATS_REPLICAS=3"
	for _, c := range []struct {
		clustered bool
		replicas  int
		want      int
	}{{true, 1, 1}, {false, 1, 0}, {true, 3, 0}} {
		var log strings.Builder
		conn := &Conn{log: slog.New(slog.NewTextHandler(&log, nil)), replicas: c.replicas}
		conn.clustered.Store(c.clustered)
		conn.logCreated("stream", "A")
		conn.logCreated("table", "B")
		if got := strings.Count(log.String(), warning); got != c.want {
			t.Errorf("%+v: %d warnings", c, got)
		}
	}
}
