package embedded_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/embedded/disktest"
	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/kit/polltest"
)

func TestWritesResumeWhenAFullDiskHasSpace(t *testing.T) {
	dir := disktest.Small(t, "8m")
	var logged logtest.Log
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
	// stored tells of each message that was sent whether the server said that it is stored.
	stored := make(map[string]bool)
	publish := func(within time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		text := fmt.Sprintf("%0100d", len(stored))
		_, err := js.Publish(ctx, "s", []byte(text), jetstream.WithRetryAttempts(0))
		stored[text] = err == nil
		return err == nil
	}
	if !publish(time.Minute) {
		t.Fatal("an empty disk is not written")
	}
	empty := disktest.Fill(t, dir)
	// A message on a full disk has no answer.
	polltest.Until(t, "what the file had room for is used up", func() bool {
		publish(time.Second)
		return logged.Count("no space left on device") > 0
	})
	if publish(time.Second) {
		t.Fatal("a full disk was written")
	}
	empty()
	space := time.Now()
	polltest.Until(t, "a disk that has room is written", func() bool { return publish(time.Second) })
	t.Logf("stored again %s after there was room", time.Since(space).Round(time.Millisecond))
	stream, err := js.Stream(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for n := range stream.CachedInfo().State.Msgs {
		m, err := stream.GetMsg(t.Context(), n+1)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(m.Data); found[text] {
			t.Errorf("message %q is stored twice", text)
		}
		found[string(m.Data)] = true
	}
	for text, said := range stored {
		if said && !found[text] {
			t.Errorf("message %q is lost", text)
		}
	}
	nc.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
