package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// bareIngest stores n messages at the NATS server with a bare publisher.
func bareIngest(ctx context.Context, address string, n, size int) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	conn, err := bus.Connect(ctx, bus.Options{URL: "nats://" + address, Name: "callyard-bench", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, fmt.Errorf("measuring a bare publisher: %w", err)
	}
	defer conn.Close()
	if took, err = conn.Bare(ctx, n, size); err == nil && took == 0 {
		err = errors.New("the bare publisher took no time")
	}
	return took, err
}
