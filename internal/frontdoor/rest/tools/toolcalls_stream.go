package tools

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// stream runs the calls and sends an event for each as it ends, then one with the whole answer.
// Calls of the caller are sent first. If the client disconnects, the running calls are canceled.
func (b *block) stream(x *httpapi.Exchange) error {
	ctx, cancel := context.WithCancel(b.ctx)
	b.ctx = ctx
	done := make(chan int, len(b.answers)) // large enough that no call waits for the client
	b.ended = func(i int) { done <- i }
	var wait sync.WaitGroup
	wait.Go(b.run)
	defer wait.Wait()
	defer cancel()

	out := httpapi.NewEvents(x)
	defer out.End()
	if out.Beat() != nil { // send the header at once
		return nil
	}
	for i := range b.own {
		if out.Event("own_call", "", httpapi.EncodeInline(b.own[i])) != nil {
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
			return nil // the client disconnected and cannot read an error
		}
	}
	wait.Wait()
	_ = out.Event("end", "", b.encode()) // a disconnected client cannot read an error
	return nil
}

// event returns the item of one call with the messages that answer only this call.
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
	return rawjson.With(httpapi.EncodeInline(item), "messages", messages)
}
