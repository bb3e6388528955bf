package embedded_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/embedded/disktest"
)

func TestWritesResumeWhenAFullDiskHasSpace(t *testing.T) {
	dir := disktest.Small(t, "8m")
	var logged bytes.Buffer
	s, err := embedded.Start(embedded.Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	publish := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := js.Publish(ctx, "s", make([]byte, 100), jetstream.WithRetryAttempts(0))
		return err
	}
	stored := uint64(0)
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	stored++
	empty := disktest.Fill(t, dir)
	for publish() == nil { // until what the file had room for is used up
		stored++
	}
	if err := publish(); err == nil {
		t.Fatal("a full disk was written")
	}
	empty()
	space := time.Now()
	for publish() != nil {
		if time.Since(space) > time.Minute {
			t.Fatalf("the disk has had room for %s, and nothing is stored; the log says:\n%s", time.Since(space), logged.String())
		}
	}
	stored++
	t.Logf("stored again %s after there was room", time.Since(space).Round(time.Millisecond))
	stream, err := js.Stream(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	// A write that was refused may have come to the file: it is at most one.
	if n := stream.CachedInfo().State.Msgs; n < stored || n > stored+1 {
		t.Errorf("the stream has %d messages, and %d were stored", n, stored)
	}
	nc.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
