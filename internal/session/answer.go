package session

import (
	"errors"
	"io"
)

const (
	// smallAnswer is how much of a message of a remote server is read at once by any number of
	// calls. mostLarge bounds how many larger ones a server has read at once: a session has a
	// hundred calls and more under way, and a result may have MaxResult bytes.
	smallAnswer = 1 << 20
	mostLarge   = 4
)

// errNoTurn means that a call ended before its large answer could be read.
var errNoTurn = errors.New("the call ended before its answer could be read")

// answerBody is what a remote server answers to one call. A message of more than smallAnswer
// waits until it is one of the mostLarge of its server, and holds that place until its end.
// It is not safe for concurrent use.
type answerBody struct {
	from  io.Reader
	turns chan struct{}   // of the server, for mostLarge
	done  <-chan struct{} // closed when the call ends
	size  int             // of the message, so far
	holds bool
}

// Read reads what the server sends.
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

// next ends a message: of a stream, another one follows.
func (a *answerBody) next() {
	if a.size = 0; a.holds {
		<-a.turns
		a.holds = false
	}
}
