// Package bus implements Callyard's use of NATS. It owns every subject, bucket and wire
// format, and provides typed sends, replies, announcements and watches on them. For stored
// data it provides [Stream], [Bucket] and [Table]. The stores that are built on them, and the
// codecs of their records, are in internal/store.
//
// It guarantees that argument and result bytes are transmitted unchanged, that a reply is
// delivered only to the call that it answers, that a call whose message reached no listener
// is reported as never started, and that a result of any size arrives completely or not at
// all, with bounded memory.
//
// It does not interpret calls. Package internal/dispatch decides which worker runs a call,
// whether it may run, and how to handle a failure.
//
// # Wire format
//
// A message contains one version byte, followed by one or more frames. Concurrent calls to
// the same worker share a message, and so do their results. A frame is
//
//	uint32 head length | uint32 payload length | head | payload
//
// in big endian. The head is a list of fields (tag byte, uvarint length, bytes). A reader
// skips unknown tags, so that versions can be mixed during an upgrade. The payload is the
// caller's argument bytes or the server's result bytes. docs/adr/0002 explains why the head
// is not a NATS header.
//
// It is one package because the names, the wire form, the roles and the connection must
// agree with each other: a subject that one of them has and another lacks reaches nobody.
package bus
