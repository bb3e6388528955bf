package session

import (
	"errors"
	"io"
)

const (
	// smallAnswer is the number of bytes of a message from a remote server that any number of calls
	// may read at once. maxLarge is the number of larger messages that are read at once per server:
	// a session can run a hundred calls and more, and a result may have MaxResult bytes.
	smallAnswer = 1 << 20
	maxLarge    = 4
)

// errNoTurn means that a call ended before its large answer could be read.
var errNoTurn = errors.New("the call ended before its answer could be read")

// answerBody reads the answer of a remote server to one call. A message of more than smallAnswer
// bytes waits for one of the maxLarge places of its server, and holds the place until it ends.
// It is not safe for concurrent use.
type answerBody struct {
	from  io.Reader
	turns chan struct{}   // semaphore of the server, for maxLarge
	done  <-chan struct{} // closed when the call ends
	size  int             // of the current message, so far
	holds bool
}

// Read reads the next bytes that the server sends.
func (a *answerBody) Read(p []byte) (int, error) {
	if !a.holds && a.size >= smallAnswer {
		select {
		case a.turns <- struct{}{}:
			a.holds = true
		case <-a.done:
			return 0, errNoTurn
		}
	}
	if !a.holds {
		p = p[:min(len(p), smallAnswer-a.size)]
	}
	n, err := a.from.Read(p)
	a.size += n
	return n, err
}

// next marks the end of a message. On an event stream, another message may follow.
func (a *answerBody) next() {
	if a.size = 0; a.holds {
		<-a.turns
		a.holds = false
	}
}
