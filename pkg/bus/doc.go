// Package bus is Callyard's use of NATS: it owns every subject, bucket and wire
// form, and offers typed sends, replies, announcements and watches on them. For what
// is stored it offers [Stream], [Bucket] and [Table]; the stores that are built on them,
// and the codecs of their records, are in internal/store.
//
// It promises that argument and result bytes travel untouched, that a reply is
// delivered to the call that asked for it and to no other, that a call whose
// message met no listener is reported as never started, and that a result of
// any size arrives whole or not at all, with bounded memory on the way.
//
// It refuses to know what a call means: which worker takes it, whether it may
// run, and what to do when it fails is decided above (internal/dispatch).
//
// # Wire form
//
// A message holds one version byte and then one or more frames; calls that are
// under way at once to one worker share a message, and so do their results. A
// frame is
//
//	uint32 head length | uint32 payload length | head | payload
//
// in big endian. The head is a list of fields (tag byte, uvarint length,
// bytes); a reader skips tags that it does not know, so that versions can be
// mixed during an upgrade. The payload is the caller's argument bytes or the
// server's result bytes. docs/adr/0002 says why the head is not a NATS header.
//
// It is one package because the names, the wire form, the roles and the connection must
// agree with each other: a subject that one of them has and another lacks reaches nobody.
package bus
