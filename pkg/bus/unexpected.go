package bus

import (
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Reasons for which a message is dropped; see [Conn.OnUnexpected].
const (
	// UnexpectedOrigin: JetStream delivered it, or it lacks the reply subject of a
	// router. NATS checks who publishes a message, but neither where a consumer
	// delivers nor where an answer of JetStream goes: a role that may read a stream
	// can point both at any subject of the account.
	UnexpectedOrigin = "origin"
	// UnexpectedNumber: it answers a message that this router did not send, or whose
	// calls have all ended.
	UnexpectedNumber = "number"
	// UnexpectedBytes: it cannot be read.
	UnexpectedBytes = "bytes"
)

// OnUnexpected calls f with the reason each time that a message is dropped because
// nobody who may send it has sent it, or because nothing waits for it. f must not
// block, and is called from several goroutines. A later call replaces f.
func (c *Conn) OnUnexpected(f func(reason string)) { c.unexpected.Store(&f) }

// dropped counts a message that was dropped.
func (c *Conn) dropped(reason string) {
	if f := c.unexpected.Load(); f != nil {
		(*f)(reason)
	}
}

// subscribe is Subscribe of NATS, or QueueSubscribe where group is not empty, for
// messages that processes send to each other: what JetStream delivers is dropped.
func (c *Conn) subscribe(subject, group string, f nats.MsgHandler) (*nats.Subscription, error) {
	return c.nc.QueueSubscribe(subject, group, func(m *nats.Msg) {
		if fromJetStream(m) {
			c.dropped(UnexpectedOrigin)
			return
		}
		f(m)
	})
}

// fromJetStream says that a message was delivered by a consumer, or is an answer of
// JetStream. What a consumer delivers has a reply subject for its acknowledgment, even
// where none is asked for; what is read directly names its stream. Other answers are
// JSON of JetStream's own, which is no message of ours.
func fromJetStream(m *nats.Msg) bool {
	return strings.HasPrefix(m.Reply, "$JS.") || len(m.Header[jetstream.StreamHeader]) > 0
}

// fromRouter says that a message can be answered at a router.
func fromRouter(m *nats.Msg) bool { return strings.HasPrefix(m.Reply, subjectReply) }
