package bustest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bare publishes n messages of size bytes to a new temporary stream with nats.go only, and returns
// the time that this took. It is the baseline for benchmarks of journals. batch is the number of
// messages in an atomic batch. If it is 1, each message is published separately and acknowledged.
func Bare(t testing.TB, to nats.InProcessConnProvider, n, batch, size int) time.Duration {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	nc, err := nats.Connect("", nats.InProcessServer(to))
	check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	check(err)
	name := fmt.Sprintf("bare_%d", batch)
	_, err = js.CreateStream(context.Background(), jetstream.StreamConfig{Name: name, Subjects: []string{name}, AllowAtomicPublish: true, AllowDirect: true})
	check(err)
	data := make([]byte, size)
	begun := time.Now()
	for sent := 0; sent < n; sent += batch {
		if batch == 1 {
			_, err := js.Publish(context.Background(), name, data)
			check(err)
			continue
		}
		id := fmt.Sprint(sent)
		for i := 1; i <= batch; i++ {
			m := &nats.Msg{Subject: name, Data: data, Header: nats.Header{"Nats-Batch-Id": {id}, "Nats-Batch-Sequence": {fmt.Sprint(i)}}}
			if i < batch {
				check(nc.PublishMsg(m))
				continue
			}
			m.Header.Set("Nats-Batch-Commit", "1")
			reply, err := nc.RequestMsg(m, 30*time.Second)
			check(err)
			if want := fmt.Sprintf(`"count":%d`, batch); !strings.Contains(string(reply.Data), want) {
				t.Fatalf("the batch was not accepted: %s", reply.Data)
			}
		}
	}
	return time.Since(begun)
}
