package tools

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
)

// stream runs the calls and sends an event for each as it ends, then one with the whole
// answer. Calls of the caller come first. When the client leaves, what still runs is
// canceled.
func (b *block) stream(x *httpapi.Exchange) error {
	ctx, cancel := context.WithCancel(b.ctx)
	b.ctx = ctx
	done := make(chan int, len(b.answers)) // as many as are sent, so no call waits for the client
	b.ended = func(i int) { done <- i }
	var wait sync.WaitGroup
	wait.Go(b.run)
	defer wait.Wait()
	defer cancel()

	out := httpapi.NewEvents(x)
	defer out.End()
	if out.Beat() != nil { // the head leaves at once
		return nil
	}
	for i := range b.own {
		if out.Event("own_call", "", trimmed(httpapi.Encode(b.own[i]))) != nil {
			return nil
		}
	}
	beat := time.NewTicker(b.handlers.heartbeat)
	defer beat.Stop()
	for left := len(b.answers); left > 0; {
		var err error
		select {
		case i := <-done:
			left--
			err = out.Event("call", "", b.event(i))
		case <-beat.C:
			err = out.Beat()
		}
		if err != nil {
			return nil // the client left; nobody reads an error
		}
	}
	wait.Wait()
	_ = out.Event("end", "", b.encode()) // likewise
	return nil
}

// event is the item of one call with the messages that answer this call alone.
func (b *block) event(i int) []byte {
	item, one := b.items[i], b.answers[i:i+1]
	var messages []byte
	if b.plain {
		messages = b.format.PlainMessages(one)
	} else {
		var notes [][]string
		messages, notes = b.format.Messages(one)
		item.Notes = notes[0]
	}
	body := trimmed(httpapi.Encode(item))
	body = append(body[:len(body)-1], `,"messages":`...)
	return append(append(body, messages...), '}')
}

// trimmed is JSON without the line end that an encoder puts behind it.
func trimmed(body []byte) []byte { return bytes.TrimSuffix(body, []byte("\n")) }
