package bus

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// bareBatch is the maximum number of messages in an atomic batch.
const bareBatch = 1000

// Bare stores n messages of size bytes in atomic batches in a temporary stream, and returns the
// time that this took. It is the baseline for benchmarks of Callyard's stores and has no other
// use.
func (c *Conn) Bare(ctx context.Context, n, size int) (took time.Duration, err error) {
	name := "callyard_bare_" + rand.Text()
	_, err = c.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{name}, Storage: jetstream.FileStorage, Replicas: c.replicas, AllowAtomicPublish: true,
	})
	if err != nil {
		return 0, fmt.Errorf("creating a stream: %w", err)
	}
	defer func() { _ = c.js.DeleteStream(ctx, name) }() // ignored: a remaining stream does no harm
	data := make([]byte, size)
	begun := time.Now()
	for sent := 0; sent < n; sent += bareBatch {
		count, id := min(bareBatch, n-sent), strconv.Itoa(sent)
		for i := 1; i <= count; i++ {
			m := &nats.Msg{Subject: name, Data: data, Header: nats.Header{"Nats-Batch-Id": {id}, "Nats-Batch-Sequence": {strconv.Itoa(i)}}}
			if i < count {
				if err := c.nc.PublishMsg(m); err != nil {
					return 0, fmt.Errorf("publishing: %w", err)
				}
				continue
			}
			m.Header.Set("Nats-Batch-Commit", "1")
			reply, err := c.nc.RequestMsgWithContext(ctx, m)
			if err != nil {
				return 0, fmt.Errorf("publishing a batch: %w", err)
			}
			if !strings.Contains(string(reply.Data), `"count":`+strconv.Itoa(count)) {
				return 0, fmt.Errorf("the batch was not accepted: %s", reply.Data)
			}
		}
	}
	return time.Since(begun), nil
}
