package session

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// gated sends a large answer. Its second half is sent when more is closed.
type gated struct {
	sent  int
	large bool // the second half was requested
	more  chan struct{}
}

func (g *gated) Read(p []byte) (int, error) {
	if g.sent == 2*smallAnswer {
		return 0, io.EOF
	}
	if g.sent >= smallAnswer {
		g.large = true
		<-g.more
	}
	n := min(len(p), 2*smallAnswer-g.sent)
	g.sent += n
	return n, nil
}

func TestConcurrentLargeAnswersPerServerAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, more := make(chan struct{}, maxLarge), make(chan struct{})
		var all sync.WaitGroup
		var whole atomic.Int64
		sources := make([]gated, 3*maxLarge)
		for i := range sources {
			sources[i].more = more
			all.Go(func() {
				in := &answerBody{from: &sources[i], turns: turns, done: t.Context().Done()}
				defer in.next()
				if text, err := readAll(in, -1, 3*smallAnswer); err == nil && len(text) == 2*smallAnswer {
					whole.Add(1)
				}
			})
		}
		synctest.Wait()
		large := 0
		for i := range sources {
			if sources[i].large {
				large++
			}
		}
		if large != maxLarge {
			t.Errorf("%d of %d large answers are read at once", large, len(sources))
		}
		ended := make(chan struct{})
		close(ended)
		late := &answerBody{from: &gated{more: more}, turns: turns, done: ended}
		if _, err := readAll(late, -1, 3*smallAnswer); !errors.Is(err, errNoTurn) {
			t.Errorf("of a call that has ended: %v", err)
		}
		close(more)
		all.Wait()
		if n := whole.Load(); n != int64(len(sources)) || len(turns) != 0 {
			t.Errorf("%d answers came whole, and %d places are held", n, len(turns))
		}
	})
}

func TestSmallStreamMessagesTakeNoLargeAnswerSlot(t *testing.T) {
	turns := make(chan struct{}, maxLarge)
	in := &answerBody{from: bytes.NewReader(make([]byte, 4*smallAnswer)), turns: turns}
	for range 4 {
		if _, err := io.ReadFull(in, make([]byte, smallAnswer)); err != nil || len(turns) != 0 {
			t.Errorf("%v, %d places are held", err, len(turns))
		}
		in.next()
	}
}

func TestMemoryGrowsAsAnAnswerArrives(t *testing.T) {
	announced := int64(64 << 20)
	text, err := readAll(bytes.NewReader(make([]byte, 10)), announced, 64<<20)
	if err != nil || cap(text) > 2*smallAnswer {
		t.Errorf("10 bytes of %d announced ones took %d, %v", announced, cap(text), err)
	}
	if _, err := readAll(bytes.NewReader(nil), announced+1, 64<<20); err == nil {
		t.Error("more than the limit is read")
	}
}
