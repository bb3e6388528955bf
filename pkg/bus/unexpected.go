package bus

import (
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The reasons for which a message is dropped; see [Conn.OnUnexpected].
const (
	// UnexpectedOrigin: the message was delivered by JetStream, or it lacks the reply subject
	// of a router. NATS checks the publisher of a message, but neither the deliver subject of a
	// consumer nor the reply subject of a JetStream request. A role that may read a stream can
	// set both to any subject of the account.
	UnexpectedOrigin = "origin"
	// UnexpectedNumber: it is a reply to a message that this router did not send, or whose
	// calls have all ended.
	UnexpectedNumber = "number"
	// UnexpectedBytes: it cannot be decoded.
	UnexpectedBytes = "bytes"
)

// OnUnexpected calls f with the reason each time a message is dropped because its origin is not
// permitted or because no call waits for it. f must not block and is called from several
// goroutines. A later call of OnUnexpected replaces f.
func (c *Conn) OnUnexpected(f func(reason string)) { c.unexpected.Store(&f) }

// dropped reports a dropped message.
func (c *Conn) dropped(reason string) {
	if f := c.unexpected.Load(); f != nil {
		(*f)(reason)
	}
}

// subscribe subscribes to messages that processes send to each other, in a queue group if group
// is not empty. It drops messages from JetStream.
func (c *Conn) subscribe(subject, group string, f nats.MsgHandler) (*nats.Subscription, error) {
	return c.nc.QueueSubscribe(subject, group, func(m *nats.Msg) {
		if fromJetStream(m) {
			c.dropped(UnexpectedOrigin)
			return
		}
		f(m)
	})
}

// fromJetStream reports whether a message was delivered by a consumer or is a response of
// JetStream. A message from a consumer has a reply subject for its acknowledgment, even if none
// is required. A message that was read directly has a header with its stream. Other responses
// are JetStream's own JSON, which is not a message of Callyard.
func fromJetStream(m *nats.Msg) bool {
	return strings.HasPrefix(m.Reply, "$JS.") || len(m.Header[jetstream.StreamHeader]) > 0
}

// fromRouter reports whether a message has the reply subject of a router.
func fromRouter(m *nats.Msg) bool { return strings.HasPrefix(m.Reply, subjectReply) }
