package bodies

import (
	"net/http"
	"os"
	"time"
)

const (
	// slowest is the minimum rate of a client in bytes per second. patience is the time that a
	// client has in addition to that.
	slowest  = 64 << 10
	patience = 15 * time.Second
)

// TimeFor returns the time limit for a client to send or read that number of bytes.
func TimeFor(bytes int) time.Duration {
	return patience + time.Duration(bytes/slowest)*time.Second
}

// blocks is the size from which an answer may block on a slow reader. Smaller answers fit in the
// socket buffer.
const blocks = 64 << 10

// LimitWrite gives the client [TimeFor] to read an answer of that number of bytes, until done is
// called.
func LimitWrite(w http.ResponseWriter, size int) (done func()) {
	if size <= blocks {
		return func() {}
	}
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(TimeFor(size))) // a writer may not support deadlines
	return func() { _ = rc.SetWriteDeadline(time.Time{}) }
}

// ReadRequest is [Budget.Read] for the body of a request, of at most limit bytes. The client has
// [TimeFor] the size that it announces, or for limit if that is less or if it announces none. This
// time is within. After it the error is [os.ErrDeadlineExceeded], and the connection cannot be used
// any more.
func (b *Budget) ReadRequest(of *Reservation, w http.ResponseWriter, r *http.Request, limit int) (body []byte, within time.Duration, err error) {
	size := limit
	if r.ContentLength >= 0 {
		size = int(min(r.ContentLength, int64(limit)))
	}
	within = TimeFor(size)
	// The body has usually arrived already, so set the deadline only if it is needed: a timer
	// that never fires costs less than two changes of the connection.
	rc := http.NewResponseController(w)
	due := time.AfterFunc(within, func() {
		_ = rc.SetReadDeadline(time.Unix(1, 0)) // a writer may not support deadlines
	})
	body, err = b.Read(of, r.Body, r.ContentLength, limit)
	if !due.Stop() && err == nil {
		err = os.ErrDeadlineExceeded // it fired as the body ended, so the connection is unusable now
	}
	return body, within, err
}
