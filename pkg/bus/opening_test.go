package bus

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func TestARequestThatIsNotAnsweredIsRepeated(t *testing.T) {
	dropped := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	early := func(context.Context) error {
		return fmt.Errorf("looking: %w", &jetstream.APIError{Code: 503, ErrorCode: codeNotAvailable})
	}
	offline := func(context.Context) error {
		return &jetstream.APIError{Code: 400, ErrorCode: codeNoPeers, Description: "no suitable peers for placement, peer offline"}
	}
	small := &jetstream.APIError{Code: 400, ErrorCode: codeNoPeers, Description: "no suitable peers for placement, insufficient storage"}
	refused := errors.New("no")
	for _, c := range []struct {
		name  string
		asks  []func(context.Context) error // nil means that it is answered
		took  time.Duration
		err   error
		times int
	}{
		{"answered", []func(context.Context) error{nil}, 0, nil, 1},
		{"two connections are dropped", []func(context.Context) error{dropped, dropped, nil}, 2 * openAttempt, nil, 3},
		{"JetStream is not ready yet", []func(context.Context) error{early, early, nil}, 2 * openPause, nil, 3},
		{"a server of the cluster is offline", []func(context.Context) error{offline, nil}, openPause, nil, 2},
		{"the server has no space", []func(context.Context) error{func(context.Context) error { return small }}, 0, small, 1},
		{"refused", []func(context.Context) error{func(context.Context) error { return refused }}, 0, refused, 1},
		{"all connections are dropped", []func(context.Context) error{dropped, dropped, dropped, dropped}, 14 * time.Second, context.DeadlineExceeded, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 14*time.Second)
				defer cancel()
				begun, times := time.Now(), 0
				got, err := asked(ctx, func(ctx context.Context) (int, error) {
					ask := c.asks[times]
					times++
					if ask != nil {
						return 0, ask(ctx)
					}
					return times, nil
				})
				if !errors.Is(err, c.err) || times != c.times || time.Since(begun) != c.took || err == nil && got != times {
					t.Errorf("%d after %d times and %v: %v", got, times, time.Since(begun), err)
				}
			})
		})
	}
}
