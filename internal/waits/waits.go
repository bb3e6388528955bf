// Package waits bounds how many requests wait at a front door for something to happen:
// long polls and event streams, over REST and MCP. Each of them keeps a connection, its
// buffers and two stacks, 25 KB in all, for as long as its client likes; without a bound
// one caller could take all the memory of the process.
//
// Calls that run are not counted here: the router bounds them.
package waits

import (
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	// All is the number of requests that may wait at one front door, Each that of one principal.
	// A fleet that waits for more than that uses a batch, whose end is one wait.
	All  = 10_000
	Each = 7_500

	// again is when a refused request should be sent again.
	again = time.Second
)

// Limit counts the requests that wait. It is safe for concurrent use.
type Limit struct {
	all, each int

	mu    sync.Mutex
	total int
	of    map[string]int // by principal; without zeros
}

// New returns a limit of that many requests in all, and of one principal.
func New(all, each int) *Limit {
	return &Limit{all: all, each: each, of: make(map[string]int)}
}

// Take counts a request of the principal until done is called, which has to happen once.
// Errors, with a time to wait: KindQuota when the principal has too many requests that wait,
// KindUnavailable when all principals together have.
func (l *Limit) Take(principal string) (done func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.of[principal] >= l.each:
		return nil, schema.Errorf(schema.KindQuota, "%d of your requests wait at this front door already. Wait for fewer calls at a time, or send them as one batch.", l.each).RetryableAfter(again)
	case l.total >= l.all:
		return nil, schema.Errorf(schema.KindUnavailable, "%d requests wait at this front door already. Send the request again later, or to another front door.", l.all).RetryableAfter(again)
	}
	l.total++
	l.of[principal]++
	return func() { l.give(principal) }, nil
}

func (l *Limit) give(principal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.of[principal]--; l.of[principal] == 0 {
		delete(l.of, principal)
	}
}
